//! Records that lack what redo of their type reads: each beside one that has it.

use super::check;
use crate::common::builder::{Form, Wal};
use crate::common::record::{Block, Image, Rec};
use walstat_format::rmgr::{
    BRIN, BTREE, GENERIC, GIN, GIST, HASH, HEAP, HEAP2, SPGIST, STANDBY, STORAGE, TRANSACTION, XLOG,
};

/// What `check` says of such a record among others; `None`: nothing, and the archive is sound.
#[track_caller]
fn told(release: &str, record: &Rec) -> Option<(String, String)> {
    told_after(40, release, record)
}

/// The same after a record of so many bytes.
#[track_caller]
fn told_after(bytes: usize, release: &str, record: &Rec) -> Option<(String, String)> {
    let mut wal = Wal::new(Form::of(release), 5);
    wal.add(&Rec::begins(1, 1));
    wal.add(&Rec::data(bytes));
    let lsn = wal.add(record);
    wal.add(&Rec::data(40));
    wal.switch();
    let ran = check(&["--as", "archive"], wal.finish().write().path());
    let problems = ran.json()["problems"].as_array().cloned().unwrap_or_default();
    assert_eq!(ran.code, Some(if problems.is_empty() { 0 } else { 4 }), "{}", ran.stdout);
    let problem = problems.first()?;
    assert_eq!((problems.len(), &problem["lsn"]), (1, &lsn.to_string().into()), "{}", ran.stdout);
    let text = |key: &str| problem[key].as_str().unwrap_or_default().to_owned();
    Some((text("expected"), text("found")))
}

/// A record of a type with main data of these numbers, two bytes each.
fn rec(rmgr: u8, info: u8, main: &[u16]) -> Rec {
    Rec { main: shorts(main), ..Rec::new(rmgr, info, 0) }
}

fn shorts(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Blocks 0, 1 and so on, with so many bytes of data each.
fn blocks(record: Rec, data: &[u16]) -> Rec {
    (0..).zip(data).fold(record, |record, (id, bytes)| record.block(page(id).data(*bytes)))
}

/// A block with a page of its own.
fn page(id: u8) -> Block {
    Block { number: 7 + u32::from(id), ..Block::new(id) }
}

/// With these blocks made anew.
fn making(mut record: Rec, ids: &[usize]) -> Rec {
    ids.iter().for_each(|id| record.blocks[*id].will_init = true);
    record
}

/// With these bytes as the data of its blocks.
fn holding(record: Rec, payload: Vec<u8>) -> Rec {
    Rec { payload, ..record }
}

/// Heap/INSERT with so many bytes of main data, at offset number 1.
const INSERT: [u16; 2] = [1, 0];
/// Heap/HOT_UPDATE: of row 1 to row 2; the flags are in the high byte of the fourth number.
const fn update(flags: u16) -> [u16; 7] {
    [700, 0, 1, flags << 8, 0, 0, 2]
}

#[test]
fn data_of_a_block() {
    let split = |level| rec(BTREE, 0x30, &[level, 0, 3, 2, 0]);
    let shorter = |record: &Rec, id: usize, bytes: u16| {
        let mut record = record.clone();
        record.blocks[id].data = bytes;
        record
    };
    for (name, release, record, id, fewer) in [
        ("Heap/INSERT", "9.5", blocks(rec(HEAP, 0x00, &INSERT), &[5]), 0, 4),
        ("Heap/INSERT", "17", blocks(rec(HEAP, 0x00, &INSERT), &[5]), 0, 0),
        ("Heap/INSERT+INIT", "17", making(blocks(rec(HEAP, 0x80, &INSERT), &[5]), &[0]), 0, 0),
        ("Heap/HOT_UPDATE", "12", blocks(rec(HEAP, 0x40, &update(0)), &[5]), 0, 4),
        ("Heap/HOT_UPDATE", "12", blocks(rec(HEAP, 0x40, &update(0x60)), &[9]), 0, 8),
        ("Heap/HOT_UPDATE", "12", blocks(rec(HEAP, 0x40, &update(0x20)), &[7]), 0, 6),
        ("Heap/INPLACE", "15", blocks(rec(HEAP, 0x70, &[1]), &[1]), 0, 0),
        ("Btree/SPLIT_L", "17", making(blocks(split(0), &[16, 8]), &[1]), 0, 15),
        ("Btree/SPLIT_L", "17", making(blocks(split(0), &[16, 8]), &[1]), 1, 0),
        ("Btree/SPLIT_L", "10", making(blocks(split(0), &[8, 8]), &[1]), 0, 0),
        ("Btree/INSERT_POST", "15", blocks(rec(BTREE, 0x50, &[1]), &[10]), 0, 0),
        ("Btree/META_CLEANUP", "12", making(blocks(rec(BTREE, 0xE0, &[]), &[16]), &[0]), 0, 0),
        ("Gin/VACUUM_DATA_LEAF_PAGE", "13", blocks(rec(GIN, 0x90, &[]), &[2]), 0, 0),
        ("Hash/SQUEEZE_PAGE", "16", squeeze(), 5, 3),
    ] {
        let filled = if record.rmgr == BTREE { entries } else { with_its_payload };
        let record = filled(record);
        assert_eq!(told(release, &record), None, "{name} {release}");
        let short = filled(shorter(&record, id, fewer));
        let expected = format!("the data of block {id} that redo of {name} reads");
        assert_eq!(told(release, &short), Some((expected, "fewer".to_owned())), "{name} {release}");
    }
}

/// With as many bytes of payload as its blocks have.
fn with_its_payload(record: Rec) -> Rec {
    let images = record.blocks.iter().filter_map(|block| block.image);
    let images: usize = images.map(|image| usize::from(image.bytes)).sum();
    let data: usize = record.blocks.iter().map(|block| usize::from(block.data)).sum();
    let payload = record.payload.into_iter().chain(std::iter::repeat(0)).take(images + data);
    Rec { payload: payload.collect(), ..record }
}

fn squeeze() -> Rec {
    // is_prim_bucket_same_wrt and is_prev_bucket_same_wrt
    blocks(rec(HASH, 0x80, &[0, 0, 0, 0, 0, 0x0101]), &[0, 0, 0, 0, 0, 4])
}

/// A block that is restored from an image needs no data, one that is made anew needs them all the same.
#[test]
fn beside_an_image() {
    let whole = |info: u8| {
        let block = Block::new(0).image(Image::WHOLE);
        rec(HEAP, info, &INSERT).block(Block { will_init: info == 0x80, ..block })
    };
    assert_eq!(told("15", &with_its_payload(whole(0x00))), None);
    let expected = "the data of block 0 that redo of Heap/INSERT+INIT reads".to_owned();
    let found = Some((expected, "fewer".to_owned()));
    assert_eq!(told("15", &with_its_payload(whole(0x80))), found);
    let apart = Image { apply: false, ..Image::WHOLE };
    let stored = rec(HEAP, 0x00, &INSERT).block(Block::new(0).image(apart));
    let (expected, _) = told("15", &with_its_payload(stored)).expect("not replayed");
    assert_eq!(expected, "the data of block 0 that redo of Heap/INSERT reads");
}

#[test]
fn rows_end_where_the_data_do() {
    // Two rows: of 2 bytes, and of 1.
    let row = |bytes: u16| [&bytes.to_le_bytes()[..], &[0; 5], &vec![7; bytes.into()]].concat();
    let rows = [row(2), vec![0], row(1)].concat();
    let insert = |info: u8, main: &[u16], payload: &[u8]| {
        let block = Block { will_init: info == 0xD0, ..Block::new(0).data(payload.len() as u16) };
        holding(rec(HEAP2, info, main).block(block), payload.to_vec())
    };
    for (info, main) in [(0x50, &[0, 2, 3, 4][..]), (0xD0, &[0, 2])] {
        let name = if info == 0x50 { "Heap2/MULTI_INSERT" } else { "Heap2/MULTI_INSERT+INIT" };
        assert_eq!(told("17", &insert(info, main, &rows)), None, "{name}");
        let short = told("17", &insert(info, main, &rows[..rows.len() - 1])).expect("short");
        assert_eq!(short.0, format!("the data of block 0 that redo of {name} reads"));
        let long = told("17", &insert(info, main, &[&rows[..], &[0]].concat())).expect("long");
        let expected = format!("data of block 0 of a record {name} that end where its rows do");
        assert_eq!(long, (expected, "more".to_owned()));
    }
}

/// Entries of a new page of a B-tree, by what each says of its length.
#[test]
fn entries_of_a_page_that_is_made_anew() {
    let entry = |bytes: u16| [shorts(&[0, 0, 1, bytes, 7, 0, 0, 0])].concat();
    let of = |record: Rec, id: usize, sizes: &[u16]| {
        let data: Vec<u8> = sizes.iter().flat_map(|bytes| entry(*bytes)).collect();
        let mut record = record;
        record.blocks[id].data = data.len() as u16;
        let before: usize = record.blocks[..id].iter().map(|block| usize::from(block.data)).sum();
        with_its_payload(holding(record, [vec![0; before], data].concat()))
    };
    let split = making(blocks(rec(BTREE, 0x30, &[0, 0, 3, 2, 0]), &[16, 0]), &[1]);
    let root = making(blocks(rec(BTREE, 0xA0, &[5, 0, 1, 0]), &[0, 0, 32]), &[0, 2]);
    for (name, record, id) in [("Btree/SPLIT_L", split, 1), ("Btree/NEWROOT", root, 0)] {
        for sizes in [[16, 16, 16], [0x4010, 15, 9], [32, 7, 16]] {
            assert_eq!(told("16", &of(record.clone(), id, &sizes)), None, "{name} {sizes:?}");
        }
        for sizes in [[0, 16, 16], [16, 16, 0], [16, 16, 24], [16, 0x1FFF, 16]] {
            let expected = format!("the data of block {id} that redo of {name} reads");
            let found = told("16", &of(record.clone(), id, &sizes));
            assert_eq!(found, Some((expected, "fewer".to_owned())), "{name} {sizes:?}");
        }
    }
}

#[test]
fn a_block_that_the_main_data_ask_for() {
    let leaf_insert = |info: u16| {
        // An entry of an inner page of keys: its place, whether one is deleted, and its 8 bytes.
        let data = shorts(&[1, 0, 0, 0, 0, 8]);
        let block = Block::new(0).data(12);
        holding(rec(GIN, 0x20, &[info, 0, 0, 0, 0]).block(block), data)
    };
    let meta = |tuples: u16, tail: u16| {
        let mut main = vec![0; 42];
        (main[36], main[37], main[40]) = (tail, tail, tuples);
        making(blocks(rec(GIN, 0x60, &main), &[0]), &[0])
    };
    let split = |level: u16, data: &[u16]| {
        entries(making(blocks(rec(BTREE, 0x40, &[level, 0, 3, 2, 0]), data), &[1]))
    };
    let delete = |is_primary: u16| blocks(rec(HASH, 0x90, &[is_primary << 8]), &[0, 0]);
    let delete_1 =
        |is_primary| Rec { blocks: delete(is_primary).blocks[1..].to_vec(), ..delete(is_primary) };
    let page_split = |pages: u16| {
        let mut main = vec![0; 11];
        main[9] = pages;
        let record = making(blocks(rec(GIST, 0x30, &main), &[0, 4]), &[1]);
        with_its_payload(record)
    };
    let rows = [
        ("17", leaf_insert(0x02), None),
        ("17", leaf_insert(0x00), Some((1, "Gin/INSERT"))),
        ("13", meta(0, 0xFFFF), None),
        ("13", meta(1, 0xFFFF), Some((1, "Gin/UPDATE_META_PAGE"))),
        ("13", meta(0, 5), Some((1, "Gin/UPDATE_META_PAGE"))),
        ("17", split(0, &[8, 8]), None),
        ("17", split(1, &[8, 8]), Some((3, "Btree/SPLIT_R"))),
        ("17", split(1, &[8, 8, 0, 0]), None),
        ("17", delete(0), None),
        ("17", delete_1(1), None),
        ("17", delete_1(0), Some((0, "Hash/DELETE"))),
        ("18", page_split(1), None),
        ("18", page_split(2), Some((2, "Gist/PAGE_SPLIT"))),
        ("18", page_split(0), Some((1, "Gist/PAGE_SPLIT"))),
    ];
    for (release, record, missing) in rows {
        let expected = missing.map(|(id, name)| {
            let expected = format!("a reference to block {id}, which redo of this {name} reads");
            (expected, "none of that id".to_owned())
        });
        assert_eq!(told(release, &record), expected, "{release} {record:?}");
    }
}

#[test]
fn offset_numbers_of_each_index() {
    let many = |numbers: &[u16]| {
        let data = shorts(numbers);
        let main = [numbers.len() as u16, 0];
        holding(blocks(rec(BTREE, 0xC0, &main), &[data.len() as u16]), data)
    };
    let leaf = |place: u16| {
        // newPage and storesNulls, offnumLeaf, offnumHeadLeaf, offnumParent, nodeI; an entry of 12 bytes.
        let main = [0, place, 0, 0, 0, 12 << 2, 0, 0, 0, 0, 0];
        blocks(rec(SPGIST, 0x10, &main), &[0])
    };
    let brin = |info: u8, range: u16, place: u16| {
        let record = blocks(rec(BRIN, info, &[0, 0, range, 0, place]), &[8, 0]);
        with_its_payload(if info & 0x80 > 0 { making(record, &[0]) } else { record })
    };
    let moved = |numbers: &[u16]| {
        let data = shorts(numbers);
        let record = rec(HASH, 0x70, &[0, 1]);
        holding(blocks(record, &[0, 0, data.len() as u16]), data)
    };
    let moved = |numbers| Rec { main: vec![0, 0, 1], ..moved(numbers) };
    let insert = |place: u16| making(blocks(rec(HEAP, 0x80, &[place, 0]), &[5]), &[0]);
    let insert = |place| with_its_payload(insert(place));
    let into_leaf = |place: u16| with_its_payload(blocks(rec(BTREE, 0x00, &[place]), &[16]));
    let into_bucket = |place: u16| with_its_payload(blocks(rec(HASH, 0x20, &[place]), &[16, 0]));
    let dedup = |numbers: &[u16]| {
        let data = shorts(numbers);
        let record = rec(BTREE, 0x60, &[numbers.len() as u16 / 2]);
        holding(blocks(record, &[data.len() as u16]), data)
    };
    let no_page = |number: u16| Some(format!("offset number {number}, which no page has"));
    let order = || Some("numbers in another order, or twice".to_owned());
    let rows = [
        (many(&[1, 2, 3]), None),
        (many(&[2, 1]), None),
        (many(&[1, 3, 2]), order()),
        (many(&[1, 2, 2]), order()),
        (many(&[0]), no_page(0)),
        (many(&[1, 2049]), no_page(2049)),
        (leaf(2048), None),
        (leaf(0), no_page(0)),
        (leaf(65535), no_page(65535)),
        (brin(0x10, 128, 2), None),
        (brin(0x10, 128, 65535), no_page(65535)),
        (brin(0x10, 0, 1), Some("0, which redo divides by".to_owned())),
        (brin(0x90, 128, 1), None),
        (brin(0x90, 128, 2), Some("offset number 2".to_owned())),
        (moved(&[1, 2]), None),
        (moved(&[1, 0]), no_page(0)),
        (insert(1), None),
        (insert(2), Some("offset number 2".to_owned())),
        (dedup(&[2, 3, 5, 2]), None),
        (dedup(&[2, 3, 65535, 2]), no_page(65535)),
        (dedup(&[0, 3, 5, 2]), no_page(0)),
        // An entry goes wherever there is room.
        (into_leaf(65535), None),
        (into_bucket(65535), None),
    ];
    for (record, found) in rows {
        assert_eq!(told("17", &record).map(|(_, found)| found), found, "{record:?}");
    }
}

/// What extensions change of a page: where, how many bytes, and these.
#[test]
fn fragments_lie_in_the_page() {
    let change = |data: &[u16]| {
        let block = Block::new(0).data(data.len() as u16 * 2);
        holding(rec(GENERIC, 0x00, &[]).block(block), shorts(data))
    };
    let beyond = Some("fewer".to_owned());
    for (data, found) in [
        (&[24, 4, 7, 7, 8190, 2, 7][..], None),
        (&[24, 4, 7, 7, 65535, 2, 7], beyond.clone()),
        (&[24, 4, 7, 7, 100, 4, 7], beyond),
    ] {
        let told = told("17", &change(data)).map(|(_, found)| found);
        assert_eq!(told, found, "{data:?}");
    }
}

/// Line pointers that vacuum sets free.
#[test]
fn line_pointers_that_no_page_has() {
    // How many are redirected, and how many are dead; the rest of the data are unused ones.
    let clean = |offsets: &[u16]| {
        let block = Block::new(0).data(offsets.len() as u16 * 2);
        holding(rec(HEAP2, 0x10, &[700, 0, 0, 1, 0]).block(block), shorts(offsets))
    };
    let no_page = |number: u16| Some(format!("offset number {number}, which no page has"));
    for (release, offsets, found) in [
        ("12", [3, 4, 2048], None),
        ("12", [3, 4, 2049], no_page(2049)),
        ("12", [65535, 4, 5], no_page(65535)),
        ("13", [3, 0, 4], None),
        ("15", [3, 0, 4], no_page(0)),
        ("15", [3, 4, 5], None),
    ] {
        let told = told(release, &clean(&offsets)).map(|(_, found)| found);
        assert_eq!(told, found, "{release} {offsets:?}");
    }
}

#[test]
fn a_fork_that_a_relation_has() {
    let create =
        |fork: u16| Rec { xid: 0, ..rec(STORAGE, 0x10, &[1663, 0, 5, 0, 16384, 0, fork, 0]) };
    assert_eq!(told("15", &create(3)), None);
    let expected = "a fork number of 0 to 3 in a record Storage/CREATE".to_owned();
    let found = "fork number 4, which no relation has".to_owned();
    assert_eq!(told("15", &create(4)), Some((expected, found)));
    let mut short = create(3);
    short.main.pop();
    let expected = "the data that redo of Storage/CREATE reads".to_owned();
    assert_eq!(told("15", &short), Some((expected, "fewer".to_owned())));
}

/// Two blocks of a record, by their ids.
type Pair = (usize, usize);

/// Of these pairs redo holds both at once, so they cannot be the same page; of those it releases one before.
#[track_caller]
fn held(release: &str, name: &str, record: &Rec, held: &[Pair], released: &[Pair]) {
    assert_eq!(told(release, record), None, "{name} {release}");
    let same = |&(one, other): &Pair| {
        let mut record = record.clone();
        record.blocks[other].number = record.blocks[one].number;
        record
    };
    for pair in held {
        let (one, other) = pair;
        let expected = format!(
            "another page in block {other} than in block {one}: redo of {name} holds both at once"
        );
        let found = Some((expected, "the same page".to_owned()));
        assert_eq!(told(release, &same(pair)), found, "{name} {release}");
    }
    for pair in released {
        assert_eq!(told(release, &same(pair)), None, "{name} {release} {pair:?}");
    }
}

/// With index entries of 8 bytes as the data of its blocks.
fn entries(record: Rec) -> Rec {
    let bytes = record.blocks.iter().map(|block| usize::from(block.data)).sum();
    let payload = shorts(&[0, 0, 0, 8]).into_iter().cycle().take(bytes).collect();
    holding(record, payload)
}

#[test]
fn blocks_of_btree_that_are_held_at_once() {
    let split = |level: u16, data: &[u16]| {
        let record = rec(BTREE, 0x30, &[level, 0, 3, 2, 0]);
        entries(making(blocks(record, data), &[1]))
    };
    let left_right_next = [(0, 1), (0, 2), (1, 2)];
    let leaf = split(0, &[16, 8, 0]);
    held("17", "Btree/SPLIT_L", &leaf, &left_right_next, &[]);
    held("13", "Btree/SPLIT_L", &leaf, &[(0, 1)], &[(0, 2), (1, 2)]);
    held("14", "Btree/SPLIT_L", &split(1, &[16, 8, 0, 0]), &left_right_next, &[(0, 3), (2, 3)]);
    let unlink = making(blocks(rec(BTREE, 0x80, &[8, 0, 9, 0]), &[0; 3]), &[0]);
    let unlink = Rec { main: [unlink.main, vec![0; 16]].concat(), ..unlink };
    held("18", "Btree/UNLINK_PAGE", &unlink, &left_right_next, &[]);
    held("13", "Btree/UNLINK_PAGE", &unlink, &[], &left_right_next);
    let root = |level: u16| {
        let record = blocks(rec(BTREE, 0xA0, &[7, 0, level, 0]), &[8, 0, 40]);
        entries(making(record, &[0, 2]))
    };
    held("15", "Btree/NEWROOT", &root(1), &[(0, 1)], &[(0, 2), (1, 2)]);
    held("15", "Btree/NEWROOT", &root(0), &[], &[(0, 1)]);
    let halfdead = making(blocks(rec(BTREE, 0xB0, &[1]), &[0, 0]), &[0]);
    let halfdead = Rec { main: vec![1; 20], ..halfdead };
    held("18", "Btree/MARK_PAGE_HALFDEAD", &halfdead, &[], &[(0, 1)]);
    // No next page, a page of another relation, and one of another fork.
    let with = |id: usize, block: fn(Block) -> Block| {
        let mut record = leaf.clone();
        record.blocks[id] = block(record.blocks[id]);
        record
    };
    let mut none = with(0, |block| Block { number: 0, ..block });
    none.blocks[2].number = 0;
    held("17", "Btree/SPLIT_L", &none, &[], &[]);
    let elsewhere = with(2, |block| Block { relation: Some([1663, 5, 16385]), ..block });
    held("17", "Btree/SPLIT_L", &elsewhere, &[], &[(0, 2), (1, 2)]);
    let unlogged = with(2, |block| Block { fork: 3, ..block });
    held("17", "Btree/SPLIT_L", &unlogged, &[(0, 1)], &[(0, 2), (1, 2)]);
}

#[test]
fn blocks_of_hash_that_are_held_at_once() {
    let main = |bytes: &[u8], record: Rec| Rec { main: bytes.to_vec(), ..record };
    let add = making(blocks(rec(HASH, 0x30, &[]), &[4, 0, 4, 0, 4]), &[0, 3]);
    let add = with_its_payload(main(&[0, 0, 1], add));
    held("15", "Hash/ADD_OVFL_PAGE", &add, &[(0, 1)], &[(0, 2), (1, 4)]);
    let allocate = main(&[0; 9], making(blocks(rec(HASH, 0x40, &[]), &[0; 3]), &[1]));
    held("10", "Hash/SPLIT_ALLOCATE_PAGE", &allocate, &[(0, 1)], &[(0, 2), (1, 2)]);
    // is_prim_bucket_same_wrt: then block 0 is not read.
    let moved = |is_primary| main(&[0, 0, is_primary], blocks(rec(HASH, 0x70, &[]), &[0; 3]));
    held("12", "Hash/MOVE_PAGE_CONTENTS", &moved(0), &[(0, 1), (0, 2), (1, 2)], &[]);
    held("12", "Hash/MOVE_PAGE_CONTENTS", &moved(1), &[(1, 2)], &[(0, 1), (0, 2)]);
    let squeezed = |is_before: u16| {
        let main = [0, 0, 0, 0, 0, is_before << 8];
        with_its_payload(blocks(rec(HASH, 0x80, &main), &[0, 0, 0, 0, 0, 4]))
    };
    let pairs = [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (0, 4), (1, 4)];
    held("16", "Hash/SQUEEZE_PAGE", &squeezed(0), &pairs, &[(2, 3), (3, 4), (0, 5), (1, 5)]);
    // Nothing is written to block 1.
    held("17", "Hash/SQUEEZE_PAGE", &squeezed(0), &[(0, 2), (0, 3)], &[(0, 1), (1, 2), (1, 4)]);
    held("17", "Hash/SQUEEZE_PAGE", &squeezed(1), &[(0, 1), (1, 2), (1, 4)], &[(0, 3), (1, 3)]);
    let delete = |is_primary: u16| blocks(rec(HASH, 0x90, &[is_primary << 8]), &[0, 0]);
    held("18", "Hash/DELETE", &delete(0), &[(0, 1)], &[]);
    held("18", "Hash/DELETE", &delete(1), &[], &[(0, 1)]);
    held("18", "Hash/INSERT", &blocks(rec(HASH, 0x20, &[1]), &[8, 0]), &[], &[(0, 1)]);
}

#[test]
fn blocks_of_other_indexes_that_are_held_at_once() {
    let three = [(0, 1), (0, 2), (1, 2)];
    let create = making(blocks(rec(GIN, 0x00, &[]), &[0, 0]), &[0, 1]);
    held("11", "Gin/CREATE_INDEX", &create, &[(0, 1)], &[]);
    let images = (0..3).map(|id| page(id).image(Image::WHOLE));
    let split = images.fold(rec(GIN, 0x30, &[]), |record, block| record.block(block));
    let mut split = Rec { main: vec![0; 26], ..with_its_payload(split) };
    split.main[24] = 0x06;
    held("18", "Gin/SPLIT", &split, &three, &[]);
    held("9.5", "Gin/DELETE_PAGE", &blocks(rec(GIN, 0x50, &[0; 6]), &[0; 3]), &three, &[]);
    let meta = |tail: u16| {
        let mut main = vec![0; 42];
        (main[36], main[37]) = (tail, if tail == u16::MAX { tail } else { 0 });
        making(blocks(rec(GIN, 0x60, &main), &[0, 0]), &[0])
    };
    held("13", "Gin/UPDATE_META_PAGE", &meta(5), &[(0, 1)], &[]);
    held("13", "Gin/UPDATE_META_PAGE", &meta(u16::MAX), &[], &[(0, 1)]);
    let list = making(blocks(rec(GIN, 0x80, &[0; 30]), &[0; 3]), &[0, 1, 2]);
    let mut list = Rec { main: list.main, ..list };
    list.main[56] = 2;
    held("14", "Gin/DELETE_LISTPAGE", &list, &[(0, 1), (0, 2)], &[(1, 2)]);
    let update = entries(blocks(rec(GIST, 0x00, &[0, 1]), &[8, 0]));
    held("9.6", "Gist/PAGE_UPDATE", &update, &[(0, 1)], &[]);
    let mut split = with_its_payload(blocks(rec(GIST, 0x30, &[0; 11]), &[0, 4, 4, 4]));
    split.main[18] = 3;
    let split = making(split, &[1, 2, 3]);
    held("18", "Gist/PAGE_SPLIT", &split, &[(0, 1), (1, 2), (1, 3)], &[(0, 2), (2, 3)]);
    let delete = blocks(rec(GIST, 0x60, &[0, 0, 0, 0, 1]), &[0, 0]);
    held("12", "Gist/PAGE_DELETE", &delete, &[(0, 1)], &[]);
    // No rows are moved; an inner entry of 8 bytes at offset number 1.
    let mut pick = blocks(rec(SPGIST, 0x50, &[0; 18]), &[0; 4]);
    (pick.main[8], pick.main[32]) = (1, 8);
    held("17", "SPGist/PICKSPLIT", &pick, &three, &[(0, 3), (1, 3), (2, 3)]);
    let update = blocks(rec(BRIN, 0x20, &[1, 0, 0, 0, 128, 0, 1]), &[8, 0, 0]);
    held("15", "BRIN/UPDATE", &with_its_payload(update), &[(0, 2), (1, 2)], &[(0, 1)]);
    let extend = making(blocks(rec(BRIN, 0x40, &[0, 0]), &[0, 0]), &[1]);
    held("15", "BRIN/REVMAP_EXTEND", &extend, &[(0, 1)], &[]);
    held("9.6", "Generic/Generic", &blocks(rec(GENERIC, 0x00, &[]), &[0; 3]), &three, &[]);
}

/// Of a record of main data alone that crosses a page, the first 1,024 bytes are at hand.
#[test]
fn blocks_of_a_long_record_that_crosses_a_page() {
    let mut pick = blocks(rec(SPGIST, 0x50, &[0; 1300]), &[0; 3]);
    (pick.main[8], pick.main[32]) = (1, 8);
    let mut same = pick.clone();
    same.blocks[2].number = same.blocks[1].number;
    for before in [40, 7700] {
        assert_eq!(told_after(before, "9.6", &pick), None);
        let (expected, _) = told_after(before, "9.6", &same).expect("the same page");
        let name = "SPGist/PICKSPLIT";
        let two =
            format!("another page in block 2 than in block 1: redo of {name} holds both at once");
        assert_eq!(expected, two);
    }
}

#[test]
fn blocks_that_may_be_the_same_page() {
    let update = with_its_payload(blocks(rec(HEAP, 0x20, &update(0)), &[5, 0]));
    held("17", "Heap/UPDATE", &update, &[], &[(0, 1)]);
    let images = (0..3).map(|id| page(id).image(Image::WHOLE));
    let images = images.fold(rec(XLOG, 0xB0, &[]), |record, block| record.block(block));
    held("17", "XLOG/FPI", &with_its_payload(images), &[], &[(0, 1), (1, 2)]);
    let leaf = blocks(rec(SPGIST, 0x10, &[0, 1, 0, 1, 0, 12 << 2, 0, 0, 0, 0, 0]), &[0, 0]);
    held("17", "SPGist/ADD_LEAF", &leaf, &[], &[(0, 1)]);
    let entry = shorts(&[1, 0, 0, 0, 0, 8]);
    let insert = blocks(rec(GIN, 0x20, &[0; 5]), &[12, 0]);
    held("17", "Gin/INSERT", &holding(insert, entry), &[], &[(0, 1)]);
}

/// The image of the root of a GIN index that is split.
#[test]
fn an_image_of_a_root_that_is_split() {
    let split = |flags: u16, images: usize| {
        let mut main = vec![0; 13];
        main[12] = flags;
        let block = |id: usize| {
            let block = page(id as u8);
            if id < images { block.image(Image::WHOLE) } else { block }
        };
        let record = rec(GIN, 0x30, &main);
        with_its_payload((0..3).fold(record, |record, id| record.block(block(id))))
    };
    assert_eq!(told("18", &split(0x06, 3)), None);
    let expected = "an image of block 2, which redo of Gin/SPLIT restores".to_owned();
    let found = "none that is restored".to_owned();
    assert_eq!(told("18", &split(0x06, 2)), Some((expected, found)));
}

/// What `check` says of transaction ids, the LSN of the record that it names, and where this record lies,
/// which stands among others; a later one says that `next` is the next id.
fn of_ids(record: Rec, next: u32, threads: &str) -> (Vec<String>, Option<String>, String) {
    let mut wal = Wal::new(Form::of("17"), 5);
    let mut begin = Rec::begins(1, 1);
    // Its next transaction.
    begin.main[24..32].copy_from_slice(&700_u64.to_le_bytes());
    wal.add(&begin);
    wal.add(&Rec::data(40));
    let lsn = wal.add(&record);
    wal.add(&Rec { xid: 701, ..Rec::data(40) });
    wal.add(&snapshot(next));
    wal.switch();
    let ran = check(&["--as", "archive", "-j", threads], wal.finish().write().path());
    let problems = ran.json()["problems"].as_array().cloned().unwrap_or_default();
    let found = problems.iter().map(|it| it["found"].as_str().unwrap_or_default().to_owned());
    let first = problems.first().and_then(|it| it["lsn"].as_str().map(str::to_owned));
    (found.collect(), first, lsn.to_string())
}

/// Standby/RUNNING_XACTS: none runs; the next, the oldest that runs, and the newest that has ended.
fn snapshot(next: u32) -> Rec {
    Rec { xid: 0, main: words(&[0, 0, 0, next, next, next - 1]), ..Rec::new(STANDBY, 0x10, 0) }
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// One bit more in a transaction id makes it millions later.
const FAR: u32 = 700 | 1 << 22;

#[test]
fn an_id_that_was_not_assigned() {
    for (xid, next, is_told) in [(700, 702, false), (FAR, 702, true), (FAR, FAR + 1, false)] {
        for threads in ["1", "3"] {
            let (found, at, lsn) = of_ids(Rec { xid, ..Rec::data(40) }, next, threads);
            let told = is_told.then(|| format!("transaction id {xid} in a record Heap2/NEW_CID"));
            assert_eq!((found, at), (Vec::from_iter(told), is_told.then_some(lsn)));
        }
    }
}

/// The same of those in the main data that redo looks up, or has a standby know of.
#[test]
fn an_id_in_the_main_data_that_was_not_assigned() {
    let of = |rmgr, info, main: &[u32]| Rec { main: words(main), ..Rec::new(rmgr, info, 700) };
    // A lock: of one table. A time, `xinfo`, and one subtransaction, or the one that was prepared.
    let lock = |xid| of(STANDBY, 0x00, &[1, xid, 5, 16384]);
    let commit = |xid| of(TRANSACTION, 0x80, &[7, 0, 1 << 1, 1, xid]);
    let prepared = |xid| of(TRANSACTION, 0xB0, &[7, 0, 1 << 4, xid]);
    let rows: [(&str, &dyn Fn(u32) -> Rec); 3] = [
        ("Standby/LOCK", &lock),
        ("Transaction/COMMIT", &commit),
        ("Transaction/COMMIT_PREPARED", &prepared),
    ];
    for (name, record) in rows {
        let (found, at, lsn) = of_ids(record(FAR), 702, "1");
        let told = format!("transaction id {FAR} in a record {name}");
        assert_eq!((found, at), (vec![told], Some(lsn)));
        assert_eq!(of_ids(record(699), 702, "1").0, Vec::<String>::new(), "{name}");
    }
    // The next one that a snapshot tells is looked up nowhere.
    assert_eq!(of_ids(snapshot(FAR), 702, "1").0, Vec::<String>::new());
}
