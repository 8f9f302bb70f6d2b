//! The label in the tar of a base backup, and its `pg_control`, which `pg_basebackup` puts behind everything
//! else.

use super::super::control::{self, Control, ControlError, FILE_BYTES};
use super::super::tar::{Kind, Member, for_each_member};
use super::{BACKUP_LABEL, LabelError, PG_VERSION, as_known, plain};
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::path::Path;

/// What a backup's own files say of it.
pub(super) struct Packed {
    /// The text of its label.
    pub text: String,
    /// Its `pg_control`, as far as that was come by.
    pub control: Result<Option<Control>, ControlError>,
    /// Whether they lie in a tar.
    pub is_member: bool,
}

impl Packed {
    /// A label alone.
    pub(super) fn label(text: String) -> Packed {
        Packed { text, control: Ok(None), is_member: false }
    }
}

/// Reads a tar up to the label and `pg_control`, which `pg_basebackup` writes last, so it may take long.
/// `pg_control` tells of which cluster the backup is, and where a standby's is consistent; a tar that was cut
/// off, as on a full disk, lacks it.
pub(super) fn read(reader: impl Read) -> Result<Packed, LabelError> {
    let (mut text, mut control, mut is_backup) = (None, None, false);
    let read = for_each_member(reader, |Member { path, kind, bytes, .. }| {
        let inner = path.strip_prefix(".").unwrap_or(&path);
        if kind != Kind::File {
            return Ok(ControlFlow::Continue(()));
        }
        if inner == Path::new(BACKUP_LABEL) {
            text = Some(plain(bytes)?);
        } else if inner == Path::new(PG_VERSION) {
            is_backup = true;
        } else if inner == control::path(Path::new("")) {
            let mut found = Vec::new();
            bytes.take(FILE_BYTES).read_to_end(&mut found)?;
            control = Some(found);
        }
        let is_all = text.is_some() && control.is_some();
        Ok(if is_all { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    let Some(text) = text else {
        read?;
        return Err(LabelError::NoMember);
    };
    let control = match (read, control) {
        // Without what lies behind it nobody restores it.
        (Err(error), _) => Err(broken_tar(&error)),
        (Ok(()), Some(bytes)) => as_known(Control::parse(&bytes)),
        (Ok(()), None) if is_backup => {
            Err(io::Error::new(io::ErrorKind::NotFound, "it is not in the tar").into())
        }
        // A label may be packed alone.
        (Ok(()), None) => Ok(None),
    };
    Ok(Packed { text, control, is_member: true })
}

fn broken_tar(error: &io::Error) -> ControlError {
    io::Error::new(error.kind(), format!("the tar cannot be read up to it: {error}")).into()
}
