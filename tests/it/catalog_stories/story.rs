//! Records about catalogs, made one after the other as a server would write them.

use walstat_format::block::{BlockRef, RelFileLocator};
use walstat_format::catalog_layout::CatalogLayout;
use walstat_format::catalog_layout::CatalogTable;
use walstat_format::crc::Crc32c;
use walstat_format::data_page::heap_tuple::{HeapTuple, infomask};
use walstat_format::lsn::Lsn;
use walstat_format::record_header::RecordHeader;
use walstat_format::rmgr;
use walstat_format::version::{VERSIONS, Version};
use walstat_names::catalog::catalog_changes::CatalogChanges;
use walstat_names::catalog::event::{BlockParts, Page, RecordParts};
use walstat_names::catalog::history::History;
use walstat_names::catalog::names::Names;
use walstat_names::catalog::row::RowVersion;
use walstat_names::catalog::store::Store;

/// The database that all is about.
pub const DATABASE: u32 = 5;

/// A file of that database.
pub fn file(relfilenode: u32) -> RelFileLocator {
    RelFileLocator { tablespace: 1663, database: DATABASE, relfilenode }
}

/// The original file of pg_class.
pub fn class_file() -> RelFileLocator {
    file(1259)
}

/// A row of pg_class.
#[derive(Clone, Copy)]
pub struct Class {
    pub oid: u32,
    pub name: &'static str,
    pub file: u32,
    pub kind: u8,
    pub persistence: u8,
    pub schema: u32,
    pub toast: u32,
    pub rewrite: u32,
    pub is_partition: bool,
}

impl Class {
    /// A table in the schema public.
    pub const TABLE: Class = Class {
        oid: 0,
        name: "",
        file: 0,
        kind: b'r',
        persistence: b'p',
        schema: 2200,
        toast: 0,
        rewrite: 0,
        is_partition: false,
    };

    fn data(&self, layout: &CatalogLayout) -> Vec<u8> {
        let class = &layout.class;
        let mut data = vec![0u8; class.bytes + 8];
        data[layout.named.name..][..self.name.len()].copy_from_slice(self.name.as_bytes());
        let mut put = |at: usize, value: u32| {
            data[at..at + 4].copy_from_slice(&value.to_le_bytes());
        };
        if let Some(at) = layout.named.oid {
            put(at, self.oid);
        }
        put(class.relfilenode, self.file);
        put(class.namespace, self.schema);
        put(class.toast, self.toast);
        if let Some(at) = class.rewrite {
            put(at, self.rewrite);
        }
        if let Some(at) = class.is_partition {
            data[at] = u8::from(self.is_partition);
        }
        data[class.kind] = self.kind;
        data[class.persistence] = self.persistence;
        data
    }
}

/// A story told so far.
#[derive(Clone)]
pub struct Story {
    version: &'static Version,
    pub changes: CatalogChanges,
    lsn: u64,
}

/// A row's old version, its new place, and how it ends.
struct Change {
    xid: u32,
    xmax: u32,
    old: u16,
    new: u16,
    infobits: u8,
}

impl Story {
    /// One of release 15.
    pub fn new() -> Story {
        Story::of(&VERSIONS[7])
    }

    /// One of any release.
    pub fn of(version: &'static Version) -> Story {
        Story { version, changes: CatalogChanges::default(), lsn: 1000 }
    }

    /// Goes on with later records.
    pub fn advance(&mut self, bytes: u64) -> &mut Story {
        self.lsn += bytes;
        self
    }

    /// The release.
    pub fn release(&self) -> &'static Version {
        self.version
    }

    /// The end of what was told so far.
    pub fn here(&self) -> Lsn {
        Lsn(self.lsn)
    }

    /// The catalogs moment by moment, on top of a store.
    pub fn history(&self, store: Store) -> History {
        self.changes.clone().history_over(store)
    }

    /// What the names are so far.
    pub fn names(&self) -> Names {
        let mut store = Store::new(self.version);
        self.changes.clone().apply_to(&mut store);
        store.names()
    }

    /// The name of the relation of this file.
    pub fn name_of(&self, relfilenode: u32) -> Option<String> {
        self.names().relation(file(relfilenode)).map(|found| found.name.to_string())
    }

    /// Applies it to a store.
    pub fn apply_to(self, store: &mut Store) {
        self.changes.apply_to(store);
    }

    /// A data directory whose pg_class has these rows in block 0, written after all that was told.
    pub fn base(&self, rows: &[(u16, u32, &Class)], is_whole: bool) -> Store {
        let mut store = Store::new(self.version);
        let rows =
            rows.iter().map(|(offset, xid, class)| (*offset, self.version((*xid, 0), class)));
        store.put_page(class_file(), CatalogTable::Class, 0, Lsn(self.lsn), rows.collect());
        store.put_file(class_file(), CatalogTable::Class, is_whole);
        store.set_base(Lsn(self.lsn), 700);
        store
    }

    /// A row as it lies in a page: before 12 with its oid in the header.
    fn row_bytes(
        &self,
        (xmin, xmax): (u32, u32),
        table: CatalogTable,
        oid: u32,
        data: &[u8],
    ) -> Vec<u8> {
        let layout = self.version.catalog;
        let has_oid = layout.named.oid.is_none();
        let mut bits = if xmax == 0 { infomask::XMAX_INVALID } else { 0 };
        bits |= if has_oid { infomask::HAS_OID } else { 0 };
        let hoff: u8 = if has_oid { 32 } else { 24 };
        let mut bytes = [xmin.to_le_bytes(), xmax.to_le_bytes(), [0; 4]].concat();
        bytes.extend([0; 6]);
        bytes.extend(layout.columns(table).to_le_bytes());
        bytes.extend(bits.to_le_bytes());
        bytes.push(hoff);
        bytes.resize(usize::from(hoff), 0);
        if has_oid {
            bytes[28..].copy_from_slice(&oid.to_le_bytes());
        }
        bytes.extend(data);
        bytes
    }

    fn class_bytes(&self, xids: (u32, u32), class: &Class) -> Vec<u8> {
        self.row_bytes(xids, CatalogTable::Class, class.oid, &class.data(self.version.catalog))
    }

    /// A row as it lies in a page.
    pub fn version(&self, xids: (u32, u32), class: &Class) -> RowVersion {
        let bytes = self.class_bytes(xids, class);
        let tuple = HeapTuple::parse(&bytes).expect("a tuple");
        RowVersion::of_page(&tuple, CatalogTable::Class, self.version.catalog).expect("a row")
    }

    fn record(
        &mut self,
        (rmgr, info): (u8, u8),
        xid: u32,
        main: &[u8],
        blocks: &[Block<'_>],
    ) -> &mut Story {
        self.lsn += 64;
        let parts: Vec<BlockParts<'_>> = blocks.iter().map(Block::parts).collect();
        self.changes.observe(&RecordParts {
            version: self.version,
            header: RecordHeader { total_bytes: 64, xid, previous: Lsn(0), info, rmgr, crc: 0 },
            end: Lsn(self.lsn),
            main_data: main,
            blocks: &parts,
        });
        self
    }

    /// A row of pg_class comes in.
    pub fn insert(&mut self, xid: u32, block: u32, offset: u16, class: &Class) -> &mut Story {
        let bytes = self.class_bytes((xid, 0), class);
        self.insert_bytes(class_file(), xid, block, offset, &bytes)
    }

    /// A row of another catalog comes in: a few oids.
    pub fn row(&mut self, xid: u32, table: CatalogTable, offset: u16, oids: &[u32]) -> &mut Story {
        let data: Vec<u8> = oids.iter().flat_map(|oid| oid.to_le_bytes()).collect();
        let bytes = self.row_bytes((xid, 0), table, 0, &data);
        self.insert_bytes(file(table.oid()), xid, 0, offset, &bytes)
    }

    /// A schema comes in (release 12 and later), in a file of pg_namespace.
    pub fn schema(&mut self, file: RelFileLocator, oid: u32, name: &str) -> &mut Story {
        let mut data = vec![0u8; self.version.catalog.named.name + 64];
        data[..4].copy_from_slice(&oid.to_le_bytes());
        data[self.version.catalog.named.name..][..name.len()].copy_from_slice(name.as_bytes());
        let bytes = self.row_bytes((700, 0), CatalogTable::Namespace, 0, &data);
        self.insert_bytes(file, 700, 0, 1, &bytes)
    }

    fn insert_bytes(
        &mut self,
        file: RelFileLocator,
        xid: u32,
        block: u32,
        offset: u16,
        row: &[u8],
    ) -> &mut Story {
        let main = [&offset.to_le_bytes()[..], &[0]].concat();
        let data = &row[18..];
        self.record((rmgr::HEAP, 0x00), xid, &main, &[Block::with_data(file, block, data)])
    }

    /// A row of pg_class is updated in its page; what both versions share is left out.
    pub fn update(
        &mut self,
        xid: u32,
        block: u32,
        old: u16,
        new: u16,
        before: &Class,
        after: &Class,
    ) -> &mut Story {
        self.update_in(class_file(), xid, block, old, new, before, after)
    }

    /// The same in another file.
    #[allow(clippy::too_many_arguments, reason = "a record has that many parts")]
    pub fn update_in(
        &mut self,
        file: RelFileLocator,
        xid: u32,
        block: u32,
        old: u16,
        new: u16,
        before: &Class,
        after: &Class,
    ) -> &mut Story {
        let layout = self.version.catalog;
        let (before, data) = (before.data(layout), after.data(layout));
        let common =
            |pairs: &mut dyn Iterator<Item = (&u8, &u8)>| pairs.take_while(|(a, b)| a == b).count();
        let prefix = common(&mut before.iter().zip(&data)).min(data.len());
        let rest = data.len() - prefix;
        let suffix = common(&mut before.iter().rev().zip(data.iter().rev())).min(rest);
        let mut row = self.class_bytes((xid, 0), after);
        // As heap_update says of the new version, in its t_infomask.
        row[21] |= (infomask::UPDATED >> 8) as u8;
        let header = row.len() - data.len();
        let mut block_data = Vec::new();
        let mut flags = 0;
        for (length, flag) in [(prefix, 0x20), (suffix, 0x40)] {
            if length >= 3 {
                block_data.extend((length as u16).to_le_bytes());
                flags |= flag;
            }
        }
        let from = if flags & 0x20 != 0 { prefix } else { 0 };
        let to = if flags & 0x40 != 0 { data.len() - suffix } else { data.len() };
        block_data.extend(&row[18..header]);
        block_data.extend(&data[from..to]);
        let change = Change { xid, xmax: xid, old, new, infobits: 0 };
        self.update_record(&change, flags, Block::with_data(file, block, &block_data))
    }

    /// A row is updated by a member of a multixact.
    pub fn update_by_multixact(
        &mut self,
        xid: u32,
        multixact: u32,
        old: u16,
        new: u16,
        after: &Class,
    ) -> &mut Story {
        let row = self.class_bytes((xid, 0), after);
        let change = Change { xid, xmax: multixact, old, new, infobits: 1 };
        self.update_record(&change, 0, Block::with_data(class_file(), 0, &row[18..]))
    }

    fn update_record(&mut self, change: &Change, flags: u8, block: Block<'_>) -> &mut Story {
        let mut main = change.xmax.to_le_bytes().to_vec();
        main.extend(change.old.to_le_bytes());
        main.extend([change.infobits, flags]);
        main.extend(0u32.to_le_bytes());
        main.extend(change.new.to_le_bytes());
        self.record((rmgr::HEAP, 0x20), change.xid, &main, &[block])
    }

    /// A row of pg_class is deleted.
    pub fn delete(&mut self, xid: u32, block: u32, offset: u16) -> &mut Story {
        let main = [&xid.to_le_bytes()[..], &offset.to_le_bytes(), &[0x10, 0]].concat();
        self.record((rmgr::HEAP, 0x10), xid, &main, &[Block::with_data(class_file(), block, &[])])
    }

    /// A row of pg_class is locked.
    pub fn lock(&mut self, xid: u32, block: u32, offset: u16) -> &mut Story {
        let main = [&xid.to_le_bytes()[..], &offset.to_le_bytes(), &[0x06, 0]].concat();
        self.record((rmgr::HEAP, 0x60), xid, &main, &[Block::with_data(class_file(), block, &[])])
    }

    /// The same as a member of a multixact of which another one updates it.
    pub fn lock_in_multixact(&mut self, xid: u32, multixact: u32, offset: u16) -> &mut Story {
        let main = [&multixact.to_le_bytes()[..], &offset.to_le_bytes(), &[0x01, 0]].concat();
        self.record((rmgr::HEAP, 0x60), xid, &main, &[Block::with_data(class_file(), 0, &[])])
    }

    /// A row of pg_class is overwritten.
    pub fn overwrite(&mut self, block: u32, offset: u16, class: &Class) -> &mut Story {
        let data = class.data(self.version.catalog);
        let block = Block::with_data(class_file(), block, &data);
        self.record((rmgr::HEAP, 0x70), 0, &offset.to_le_bytes(), &[block])
    }

    /// Rows of pg_class are taken away (release 15).
    pub fn prune(&mut self, block: u32, offsets: &[u16]) -> &mut Story {
        let data: Vec<u8> = offsets.iter().flat_map(|offset| offset.to_le_bytes()).collect();
        let block = Block::with_data(class_file(), block, &data);
        self.record((rmgr::HEAP2, 0x10), 0, &[0; 8], &[block])
    }

    /// A row of pg_class is frozen (release 15).
    pub fn freeze(&mut self, block: u32, offset: u16) -> &mut Story {
        let bits = infomask::XMIN_FROZEN | infomask::XMAX_INVALID;
        let data =
            [&[0; 4][..], &offset.to_le_bytes(), &[33, 0], &bits.to_le_bytes(), &[0, 0]].concat();
        let block = Block::with_data(class_file(), block, &data);
        self.record((rmgr::HEAP2, 0x30), 0, &[0, 0, 0, 0, 1, 0], &[block])
    }

    /// A page of pg_class is in the WAL as an image.
    pub fn image(&mut self, block: u32, rows: &[(u16, u32, u32, &Class)]) -> &mut Story {
        self.image_in(class_file(), block, rows)
    }

    /// The same in another file.
    pub fn image_in(
        &mut self,
        file: RelFileLocator,
        block: u32,
        rows: &[(u16, u32, u32, &Class)],
    ) -> &mut Story {
        let rows: Vec<Vec<u8>> = rows
            .iter()
            .map(|(_, xmin, xmax, class)| self.class_bytes((*xmin, *xmax), class))
            .collect();
        let items: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        let page = page_of(&items);
        let block = Block { file, block, data: &[], page: Some(&page) };
        self.record((rmgr::XLOG, 0xB0), 0, &[], &[block])
    }

    /// A transaction commits.
    pub fn commit(&mut self, xid: u32) -> &mut Story {
        self.record((rmgr::TRANSACTION, 0x00), xid, &[0; 8], &[])
    }

    /// A transaction commits with its subtransactions.
    pub fn commit_with(&mut self, xid: u32, subxids: &[u32]) -> &mut Story {
        let mut main = vec![0; 8];
        main.extend([2, 0, 0, 0]);
        main.extend((subxids.len() as u32).to_le_bytes());
        main.extend(subxids.iter().flat_map(|xid| xid.to_le_bytes()));
        self.record((rmgr::TRANSACTION, 0x80), xid, &main, &[])
    }

    /// A prepared transaction commits.
    pub fn commit_prepared(&mut self, xid: u32) -> &mut Story {
        let main = [&[0; 8][..], &[0x10, 0, 0, 0], &xid.to_le_bytes()].concat();
        self.record((rmgr::TRANSACTION, 0xB0), 0, &main, &[])
    }

    /// A transaction aborts.
    pub fn abort(&mut self, xid: u32) -> &mut Story {
        self.record((rmgr::TRANSACTION, 0x20), xid, &[0; 8], &[])
    }

    /// A multixact is made of xids and what they do.
    pub fn multixact(&mut self, id: u32, members: &[(u32, u32)]) -> &mut Story {
        let mut main =
            [id.to_le_bytes(), [9, 0, 0, 0], (members.len() as u32).to_le_bytes()].concat();
        for (xid, status) in members {
            main.extend(xid.to_le_bytes());
            main.extend(status.to_le_bytes());
        }
        self.record((rmgr::MULTIXACT, 0x20), 0, &main, &[])
    }

    /// A relation's file is made.
    pub fn create_file(&mut self, xid: u32, file: RelFileLocator) -> &mut Story {
        let words = [file.tablespace, file.database, file.relfilenode, 0];
        let main: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        // XLOG_SMGR_CREATE.
        self.record((2, 0x10), xid, &main, &[])
    }

    /// Catalogs have other files.
    pub fn map(&mut self, files: &[(u32, u32)]) -> &mut Story {
        let mut map = vec![0u8; 512];
        let pairs = files.iter().flat_map(|(oid, file)| [*oid, *file]);
        let words = [0x0059_2717, files.len() as u32].into_iter().chain(pairs);
        for (index, word) in words.enumerate() {
            map[index * 4..index * 4 + 4].copy_from_slice(&word.to_le_bytes());
        }
        let crc = Crc32c::portable().update(Crc32c::START, &map[..504]);
        map[504..508].copy_from_slice(&Crc32c::finish(crc).to_le_bytes());
        let head: Vec<u8> =
            [DATABASE, 1663, 512].iter().flat_map(|word| word.to_le_bytes()).collect();
        self.record((rmgr::RELMAP, 0x00), 0, &[head, map].concat(), &[])
    }

    /// A database is copied, or moved, as files: oids and tablespaces.
    pub fn copy_database(&mut self, from: (u32, u32), to: (u32, u32)) -> &mut Story {
        let words = [to.0, to.1, from.0, from.1];
        let main: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.record((rmgr::DATABASE, 0x00), 0, &main, &[])
    }
}

/// A block of a record.
struct Block<'a> {
    file: RelFileLocator,
    block: u32,
    data: &'a [u8],
    page: Option<&'a [u8]>,
}

impl<'a> Block<'a> {
    fn with_data(file: RelFileLocator, block: u32, data: &'a [u8]) -> Block<'a> {
        Block { file, block, data, page: None }
    }

    fn parts(&self) -> BlockParts<'a> {
        BlockParts {
            reference: BlockRef {
                id: 0,
                fork: 0,
                will_init: false,
                relation: self.file,
                block: self.block,
                data_bytes: self.data.len() as u16,
                payload_at: 0,
                image: None,
            },
            page: self.page.map_or(Page::None, Page::Restored),
            data: self.data,
        }
    }
}

/// A page with these items, laid down as a server does.
fn page_of(items: &[&[u8]]) -> Vec<u8> {
    let mut page = vec![0u8; 8192];
    let mut upper = page.len();
    for (index, item) in items.iter().enumerate() {
        upper = (upper - item.len()) & !7;
        page[upper..upper + item.len()].copy_from_slice(item);
        let bits = upper as u32 | 1 << 15 | (item.len() as u32) << 17;
        page[24 + index * 4..28 + index * 4].copy_from_slice(&bits.to_le_bytes());
    }
    for (at, value) in [(12, 24 + items.len() * 4), (14, upper), (16, 8192), (18, 8192 | 4)] {
        page[at..at + 2].copy_from_slice(&(value as u16).to_le_bytes());
    }
    page
}
