//! What is simulated: combinations of settings that were asked for, or the usual ones.

use super::settings::{Change, Checkpoints, Settings, codec_name};
use walstat_format::image::{Compression, ImageFlags};

/// A setting as it was asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct AskedSetting {
    /// The option's name.
    pub option: &'static str,
    /// Its value, as typed.
    pub value: String,
    /// What it does.
    pub change: Change,
}

/// Settings that are simulated together.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scenario {
    /// What was asked for; nothing for the base itself.
    pub asked: Vec<AskedSetting>,
}

/// Distances of checkpoints on the curve, in those of the base.
const CURVE: [(&str, f64); 5] =
    [("0.5x", 0.5), ("2x", 2.0), ("4x", 4.0), ("8x", 8.0), ("16x", 16.0)];

impl Scenario {
    /// These changes together.
    pub fn of(changes: impl IntoIterator<Item = Change>) -> Scenario {
        let asked = changes.into_iter().map(|change| {
            let (option, value) = change.named();
            AskedSetting { option, value, change }
        });
        Scenario { asked: asked.collect() }
    }

    /// A name: the options with their values.
    pub fn id(&self) -> String {
        let parts: Vec<String> =
            self.asked.iter().map(|asked| format!("{}={}", asked.option, asked.value)).collect();
        if parts.is_empty() { "base".to_owned() } else { parts.join(",") }
    }

    /// The settings.
    pub fn settings(&self) -> Settings {
        let mut settings = Settings::default();
        self.asked.iter().for_each(|asked| settings.change(&asked.change));
        settings
    }

    /// All combinations: one value of each option.
    pub fn combinations(options: &[Vec<AskedSetting>]) -> Vec<Scenario> {
        let mut scenarios = vec![Scenario::default()];
        for values in options.iter().filter(|values| !values.is_empty()) {
            let with = |scenario: &Scenario| {
                let asked = scenario.asked.clone();
                let extended = values.iter().map(move |value| Scenario {
                    asked: [asked.clone(), vec![value.clone()]].concat(),
                });
                extended.collect::<Vec<_>>()
            };
            scenarios = scenarios.iter().flat_map(with).collect();
        }
        scenarios.retain(|scenario| !scenario.asked.is_empty());
        scenarios
    }

    /// What is shown where nothing was asked for: checkpoints at other distances, and codecs other
    /// than the base's.
    pub(crate) fn usual(flags: ImageFlags, own: Option<Compression>) -> Vec<Scenario> {
        let one = |option, value: &str, change| Scenario {
            asked: vec![AskedSetting { option, value: value.to_owned(), change }],
        };
        let factor = |(text, factor)| {
            one("checkpoint-every", text, Change::Checkpoints(Checkpoints::Factor(factor)))
        };
        let codecs = std::iter::once(None).chain(Compression::ALL.iter().copied().map(Some));
        let known = codecs.filter(|codec| {
            *codec != own && (flags.has_lz4() || matches!(codec, None | Some(Compression::Pglz)))
        });
        let codec = |codec| one("wal-compression", codec_name(codec), Change::Compression(codec));
        CURVE.into_iter().map(factor).chain(known.map(codec)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use walstat_format::lsn::Lsn;

    fn asked(option: &'static str, value: &str, change: Change) -> AskedSetting {
        AskedSetting { option, value: value.to_owned(), change }
    }

    #[test]
    fn one_value_of_each_option_makes_a_scenario() {
        let sizes = vec![
            asked("max-wal-size", "1GB", Change::MaxWalSize(1 << 30)),
            asked("max-wal-size", "4GB", Change::MaxWalSize(4 << 30)),
        ];
        let codec = vec![asked("wal-compression", "off", Change::Compression(None))];
        let all = Scenario::combinations(&[sizes, Vec::new(), codec]);
        let ids: Vec<String> = all.iter().map(Scenario::id).collect();
        assert_eq!(
            ids,
            ["max-wal-size=1GB,wal-compression=off", "max-wal-size=4GB,wal-compression=off"]
        );
        assert_eq!(all.last().map(|s| s.settings().compression), Some(Some(None)));
        assert_eq!(Scenario::combinations(&[Vec::new()]), []);
    }

    #[test]
    fn changes_have_the_names_of_their_options() {
        let scenario = Scenario::of([
            Change::MaxWalSize(1 << 30),
            Change::Compression(Some(Compression::Zstd)),
            Change::Checkpoints(Checkpoints::At(vec![Lsn(0x28), Lsn(0x100)])),
            Change::FullPageWrites(false),
        ]);
        let id = "max-wal-size=1073741824,wal-compression=zstd,redo-at=0/00000028,0/00000100,\
                  full-page-writes=off";
        assert_eq!(scenario.id(), id);
    }

    #[test]
    fn the_bases_own_codec_is_not_shown_as_a_change() {
        let names = |flags, own| {
            let all = Scenario::usual(flags, own).into_iter().skip(CURVE.len());
            all.map(|scenario| scenario.id()).collect::<Vec<_>>()
        };
        let [off, pglz, lz4, zstd] =
            ["off", "pglz", "lz4", "zstd"].map(|n| format!("wal-compression={n}"));
        assert_eq!(names(ImageFlags::V10, None), std::slice::from_ref(&pglz));
        assert_eq!(names(ImageFlags::V15, Some(Compression::Lz4)), [off, pglz, zstd]);
        assert_eq!(names(ImageFlags::V10, Some(Compression::Lz4)).len(), 2, "{lz4}");
    }
}
