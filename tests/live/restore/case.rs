//! A case: a damage (or none) to an archive in one layout, and what the server is expected to make of
//! it. The server decides; the expectation keeps a case from testing nothing.

use super::tree::{Layout, State, Tree};

/// What an archive is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// A restore reaches what the names promise.
    Green,
    /// It does not.
    Red,
}

type Damage = Box<dyn Fn(&mut Tree<'_>) + Send + Sync>;

/// One line of the table.
pub struct Case {
    /// What was done.
    pub name: String,
    /// To what layout.
    pub layout: Layout,
    /// What had been archived.
    pub state: State,
    /// Expected of the server; nothing: only it can tell.
    pub expected: Option<Verdict>,
    /// Names by which a restore_command may fetch: all must do.
    pub fetched_as: Vec<Layout>,
    /// Does it.
    pub damage: Damage,
}

/// The table while it is written.
#[derive(Default)]
pub struct Table {
    /// Its lines.
    pub cases: Vec<Case>,
}

impl Table {
    /// One line for each layout.
    pub fn each(
        &mut self,
        expected: Verdict,
        layouts: &[Layout],
        name: &'static str,
        damage: impl Fn(&mut Tree<'_>) + Copy + Send + Sync + 'static,
    ) {
        for &layout in layouts {
            self.cases.push(Case {
                name: name.to_owned(),
                layout,
                state: State::Promoted,
                expected: Some(expected),
                fetched_as: vec![layout],
                damage: Box::new(damage),
            });
        }
    }

    /// Lines of damage.
    pub fn red(
        &mut self,
        layouts: &[Layout],
        name: &'static str,
        damage: impl Fn(&mut Tree<'_>) + Copy + Send + Sync + 'static,
    ) {
        self.each(Verdict::Red, layouts, name, damage);
    }

    /// Lines that look odd and are no damage.
    pub fn green(
        &mut self,
        layouts: &[Layout],
        name: &'static str,
        damage: impl Fn(&mut Tree<'_>) + Copy + Send + Sync + 'static,
    ) {
        self.each(Verdict::Green, layouts, name, damage);
    }

    /// A line of which only the server can say what it is.
    pub fn by_chance(
        &mut self,
        layout: Layout,
        state: State,
        seed: u64,
        damage: impl Fn(&mut Tree<'_>) + Send + Sync + 'static,
    ) {
        self.cases.push(Case {
            name: format!("by chance {seed}"),
            layout,
            state,
            expected: None,
            fetched_as: vec![layout],
            damage: Box::new(damage),
        });
    }

    /// The last line is about an archive in this state.
    pub fn in_state(&mut self, state: State) {
        self.last().state = state;
    }

    /// The last line's files may be fetched in one of these ways.
    pub fn fetched_as(&mut self, layouts: &[Layout]) {
        self.last().fetched_as = layouts.to_vec();
    }

    fn last(&mut self) -> &mut Case {
        self.cases.last_mut().expect("a line before")
    }
}
