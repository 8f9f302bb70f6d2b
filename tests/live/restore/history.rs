//! Cases of timeline histories.

use super::case::Table;
use super::origin::HISTORY;
use super::tree::{Layout, State};

use Layout::{Barman, Gzip, PgBackRest, Raw, Zstd};

/// Adds them.
pub fn add(table: &mut Table) {
    broken(table);
    wrong(table);
    harmless(table);
    three(table);
}

fn broken(table: &mut Table) {
    table.red(&[Raw, Zstd, Barman], "history missing", |tree| tree.remove(HISTORY));
    table.red(&[Raw], "history missing, both timelines went on", |tree| tree.remove(HISTORY));
    table.in_state(State::Both);
    table.red(&[Raw, Gzip, PgBackRest], "history empty", |tree| tree.store(HISTORY, b""));
    table.red(&[Raw], "history of no bytes, just promoted", |tree| tree.store(HISTORY, b""));
    table.in_state(State::Fresh);
    table.red(&[Raw, Barman], "history garbled", |tree| {
        tree.store(HISTORY, b"\x07\xff\x00garbage\nmore\tof it\n");
    });
    table.red(&[Raw], "history of zeros", |tree| tree.edit(HISTORY, |text| text.fill(0)));
    table.red(&[Gzip], "history's compressed file cut off", |tree| {
        tree.edit_stored(HISTORY, |stored| stored.truncate(15));
    });
    table.red(&[Raw], "history without its position", |tree| tree.store(HISTORY, b"1\n"));
}

fn wrong(table: &mut Table) {
    let line = |timeline: u32, position: u64| {
        format!(
            "{timeline}\t{:X}/{:X}\tno recovery target specified\n",
            position >> 32,
            position as u32
        )
    };
    table.red(&[Raw, Gzip], "switch point a segment too late", move |tree| {
        let text = line(1, tree.origin.switch + (1 << 20));
        tree.store(HISTORY, text.as_bytes());
    });
    // Recovery takes older timelines' segments wherever newer ones are missing. A backup with its checkpoint
    // between the wrong point and the right one cannot be restored: "requested timeline is not a child of
    // this server's history".
    for state in [State::Promoted, State::Both] {
        table.green(&[Raw], "switch point a segment too early", move |tree| {
            let text = line(1, tree.origin.switch - (1 << 20));
            tree.store(HISTORY, text.as_bytes());
        });
        table.in_state(state);
    }
    table.green(&[Raw], "switch point three segments too early", move |tree| {
        let text = line(1, tree.origin.switch - (3 << 20));
        tree.store(HISTORY, text.as_bytes());
    });
    table.green(&[Raw], "switch point a record too early", move |tree| {
        let name = tree.left();
        let places = tree.records(&name).iter().map(|place| place.offset as u64);
        let switch = tree.origin.switch % (1 << 20);
        let before = places.filter(|&offset| offset < switch).max().expect("a record");
        let text = line(1, tree.origin.switch - switch + before);
        tree.store(HISTORY, text.as_bytes());
    });
    table.green(&[Raw], "switch point a record too late", move |tree| {
        let name = tree.on_new(0);
        let places = tree.records(&name).iter().map(|place| place.offset as u64);
        let switch = tree.origin.switch % (1 << 20);
        let after = places.filter(|&offset| offset > switch).nth(3).expect("a record");
        let text = line(1, tree.origin.switch - switch + after);
        tree.store(HISTORY, text.as_bytes());
    });
    table.red(&[Raw], "switch point before the base backup", move |tree| {
        tree.store(HISTORY, line(1, 0x100_0000 >> 8).as_bytes());
    });
    table.red(&[Raw], "history names a parent that it has not", move |tree| {
        let text = line(3, tree.origin.switch);
        tree.store(HISTORY, text.as_bytes());
    });
    table.red(&[Raw], "history names itself as parent", move |tree| {
        let text = line(2, tree.origin.switch);
        tree.store(HISTORY, text.as_bytes());
    });
    table.red(&[Raw], "timelines of the history descend", move |tree| {
        let text = line(1, tree.origin.switch) + &line(1, tree.origin.switch);
        tree.store(HISTORY, text.as_bytes());
    });
}

/// Archives of three timelines.
fn three(table: &mut Table) {
    table.green(&[Raw], "three timelines, one after the other", |_| {});
    table.in_state(State::Third);
    table.green(&[Barman], "three timelines, one after the other", |_| {});
    table.in_state(State::Third);
    table.green(&[Raw], "two timelines that branch off the same one", |_| {});
    table.in_state(State::Rewound);
    table.green(&[PgBackRest], "two timelines that branch off the same one", |_| {});
    table.in_state(State::Rewound);
    table.green(&[Raw], "recovery to an earlier place than the newest timeline begins at", |_| {});
    table.in_state(State::Earlier);
    let third = "00000003.history";
    table.red(&[Raw], "history of timeline 2 missing, timeline 3 has its own", |t| {
        t.remove(HISTORY)
    });
    table.in_state(State::Third);
    table.red(&[Zstd], "history of timeline 3 missing", move |tree| tree.remove(third));
    table.in_state(State::Third);
    table.red(&[Raw], "history of timeline 3 missing, both branches went on", move |tree| {
        tree.remove(third)
    });
    table.in_state(State::Rewound);
    table.red(&[Gzip], "history of timeline 3 without timeline 1", move |tree| {
        tree.edit(third, |text| {
            let line = text.iter().position(|byte| *byte == b'\n').expect("two lines");
            text.drain(..=line);
        });
    });
    table.in_state(State::Third);
    table.red(&[Raw], "timeline 2's last segment missing that timeline 3 stands on", |tree| {
        tree.remove(&tree.last());
    });
    table.in_state(State::Third);
    table.red(&[Raw], "last segment of the branch that was left all zeros", |tree| {
        tree.store(&tree.last(), &super::tree::zeros());
    });
    table.in_state(State::Rewound);
    table.red(&[Raw], "last segment of the newest branch all zeros", |tree| {
        let number = *tree.numbers(3).last().expect("segments");
        tree.store(&super::origin::segment(3, number), &super::tree::zeros());
    });
    table.in_state(State::Rewound);
}

fn harmless(table: &mut Table) {
    table.green(&[Raw], "history with a comment and empty lines", |tree| {
        tree.edit(HISTORY, |text| {
            text.splice(0..0, b"# made by hand\n\n".iter().copied());
            text.extend(b"\n\n");
        });
    });
    table.green(&[Raw], "history without a reason", |tree| {
        tree.edit(HISTORY, |text| {
            let end = text.iter().rposition(|&byte| byte == b'\t').expect("a reason");
            text.truncate(end);
        });
    });
}
