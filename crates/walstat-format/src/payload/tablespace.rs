//! Main data of tablespaces made and dropped: `src/include/commands/tablespace.h`.

use crate::cursor::Cursor;

/// `XLOG_TBLSPC_CREATE`.
pub const CREATE: u8 = 0x00;

/// The directory in which a tablespace is made (`xl_tblspc_create_rec`); an empty one: within the data
/// directory.
pub fn created_at(main: &[u8]) -> Option<&[u8]> {
    let mut cursor = Cursor::new(main);
    cursor.take(4)?;
    cursor.text()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_ends_with_a_zero_byte() {
        assert_eq!(created_at(b"\x01\x40\x00\x00/srv/fast\0"), Some(&b"/srv/fast"[..]));
        assert_eq!(created_at(b"\x01\x40\x00\x00\0"), Some(&b""[..]));
        assert_eq!(created_at(b"\x01\x40\x00\x00/srv"), None);
        assert_eq!(created_at(b"\x01\x40"), None);
    }
}
