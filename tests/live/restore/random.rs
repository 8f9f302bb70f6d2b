//! Cases that nobody thought of: a layout, a segment and a damage by chance, the same in every run.
//! Only the server says what they are.

use super::case::Table;
use super::origin::{SEGMENT, parse};
use super::tree::{Layout, State, Tree};
use crate::common::xorshift::Xorshift;

/// Adds so many.
pub fn add(table: &mut Table, cases: u64) {
    for seed in 1..=cases {
        let mut random = Xorshift::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let layout = Layout::ALL[random.below(Layout::ALL.len() as u64) as usize];
        let state = if random.below(4) == 0 { State::Both } else { State::Promoted };
        table.by_chance(layout, state, seed, move |tree| damage(tree, &mut random.clone()));
    }
}

/// One of all damages to one of all segments, the last ones more often; where the last ones are not
/// archived yet, the archive ends in the middle of a record.
fn damage(tree: &mut Tree<'_>, random: &mut Xorshift) {
    let mut names: Vec<String> = tree.names().into_iter().filter(|n| parse(n).is_some()).collect();
    let missing = random.below(6).saturating_sub(3);
    for name in names.split_off(names.len() - missing as usize) {
        tree.remove(&name);
    }
    let from_end = random.below(names.len() as u64).min(random.below(names.len() as u64)) / 2;
    let name = names[names.len() - 1 - from_end as usize].clone();
    let plain = tree.plain(&name);
    let end = tree.records(&name).last().map_or(SEGMENT, |record| record.offset + record.bytes);
    let at = random.below(end.min(SEGMENT) as u64) as usize;
    match random.below(12) {
        0..3 => tree.edit(&name, |plain| plain[at] ^= 1 << random.below(8)),
        3 => {
            let records = tree.records(&name);
            let near = if random.below(2) == 0 { 6 } else { records.len() as u64 };
            let record = records[records.len() - 1 - random.below(near) as usize];
            let byte = record.offset + random.below(24) as usize;
            tree.edit(&name, |plain| plain[byte.min(SEGMENT - 1)] ^= 1 << random.below(8));
        }
        4 => {
            let header = at / 8192 * 8192 + random.below(24) as usize;
            tree.edit(&name, |plain| plain[header] ^= 1 << random.below(8));
        }
        5 => tree.edit(&name, |plain| plain[at / 512 * 512..][..512].fill(0)),
        6 => tree
            .edit(&name, |plain| plain[at / 512 * 512..][..512].fill_with(|| random.next() as u8)),
        7 => tree.edit(&name, |plain| plain[at / 8192 * 8192..].fill(0)),
        8 => tree.edit(&name, |plain| plain.truncate(at)),
        9 => {
            let length = tree.stored(&name).len() as u64;
            let cut = random.below(length) as usize;
            tree.edit_stored(&name, |stored| stored.truncate(cut));
        }
        10 => {
            let length = tree.stored(&name).len() as u64;
            let byte = random.below(length) as usize;
            tree.edit_stored(&name, |stored| stored[byte] ^= 1 << random.below(8));
        }
        _ => {
            let other = &names[random.below(names.len() as u64) as usize];
            let content = if *other == name { vec![0; SEGMENT] } else { tree.plain(other) };
            tree.store(&name, &content[..plain.len()]);
        }
    }
}
