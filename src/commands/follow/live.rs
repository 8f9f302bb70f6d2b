//! The live screen: what is shown on it, and what keys do.

use crate::failure::Failure;
use crate::output::terminal::{Key, Terminal};
use crate::render::follow_screen::{Page, lines};
use std::cmp::Reverse;
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};
use walstat_format::ordered::OrderBy;
use walstat_report::model::Numbers;
use walstat_report::model::follow::{HappeningRow, Moment, Now, TableNow};

/// The page is made anew so often.
const EVERY: Duration = Duration::from_secs(1);
/// What is written now is what came in so many of those times.
const LATELY: usize = 5;
/// Bars are kept for some minutes.
const RATES: usize = 600;
const HAPPENINGS: usize = 100;

/// By what tables are ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Sort {
    #[default]
    Bytes,
    Records,
    Images,
    Name,
}

impl Sort {
    /// The one after it, around.
    fn next(self) -> Sort {
        match self {
            Sort::Bytes => Sort::Records,
            Sort::Records => Sort::Images,
            Sort::Images => Sort::Name,
            Sort::Name => Sort::Bytes,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Sort::Bytes => "bytes",
            Sort::Records => "records",
            Sort::Images => "images",
            Sort::Name => "name",
        }
    }

    /// Orders tables: the largest first, or by their names.
    fn order(self, tables: &mut [TableNow]) {
        let by = |tables: &mut [TableNow], number: fn(&Numbers) -> u64| {
            tables.order_by_key(|table| Reverse(number(&table.numbers)));
        };
        match self {
            Sort::Bytes => by(tables, |numbers| numbers.total_bytes),
            Sort::Records => by(tables, |numbers| numbers.count),
            Sort::Images => by(tables, |numbers| numbers.fpi_bytes),
            Sort::Name => tables.order_by(|a, b| a.labels.cmp(&b.labels)),
        }
    }
}

/// The screen.
pub struct Live {
    terminal: Terminal,
    path: String,
    has_styles: bool,
    due: Instant,
    reading: String,
    moment: Option<Moment>,
    lately: VecDeque<Now>,
    /// The sums of what came lately.
    now: Now,
    tables: Vec<TableNow>,
    rates: VecDeque<f64>,
    happenings: VecDeque<HappeningRow>,
    /// What cannot be written.
    troubles: Vec<String>,
    sort: Sort,
    chosen: usize,
    /// The labels of the table that is chosen, once keys have chosen one: its place changes.
    chosen_table: Option<[String; 3]>,
    is_open: bool,
    /// What the page had when it was paused: bars and events go on beside it.
    paused: Option<(VecDeque<f64>, VecDeque<HappeningRow>)>,
}

impl Live {
    /// Begins the screen.
    pub fn begin(path: String, has_styles: bool) -> Result<Live, Failure> {
        let terminal = Terminal::begin().map_err(failed)?;
        let mut live = Live {
            terminal,
            path,
            has_styles,
            due: Instant::now(),
            reading: String::new(),
            moment: None,
            lately: VecDeque::new(),
            now: Now::default(),
            tables: Vec::new(),
            rates: VecDeque::new(),
            happenings: VecDeque::new(),
            troubles: Vec::new(),
            sort: Sort::default(),
            chosen: 0,
            chosen_table: None,
            is_open: false,
            paused: None,
        };
        live.draw()?;
        Ok(live)
    }

    /// How far reading has come, before there is a page.
    pub fn note_reading(&mut self, position: String) -> Result<(), Failure> {
        self.reading = position;
        self.draw()
    }

    /// What cannot be written at present: it is shown from the next page on.
    pub fn note_troubles(&mut self, troubles: Vec<String>) {
        self.troubles = troubles;
    }

    /// Whether the page is to be made anew.
    pub fn is_due(&self) -> bool {
        Instant::now() >= self.due
    }

    /// Takes over what there is now.
    pub fn take(&mut self, moment: &Moment, now: Now) -> Result<(), Failure> {
        self.due = Instant::now() + EVERY;
        for happening in &moment.happenings {
            self.happenings.push_front(happening.clone());
        }
        // A checkpoint is told when it has ended, with the time when it began.
        self.happenings.make_contiguous().order_by(|a, b| b.time.cmp(&a.time));
        while self.happenings.len() > HAPPENINGS {
            let is_checkpoint = |row: &HappeningRow| row.event == "checkpoint";
            let oldest = self.happenings.iter().rposition(is_checkpoint);
            self.happenings.remove(oldest.unwrap_or(HAPPENINGS));
        }
        if moment.bytes_per_second.is_some() {
            self.rates.extend(moment.bytes_per_second);
            self.lately.push_back(now);
        }
        while self.rates.len() > RATES {
            self.rates.pop_front();
        }
        while self.lately.len() > LATELY {
            self.lately.pop_front();
        }
        if self.paused.is_some() {
            return Ok(());
        }
        self.moment = Some(moment.clone());
        self.now = Now::sum(&self.lately);
        self.order();
        self.draw()
    }

    /// Waits so long for keys, and does what they say; whether the screen is to end.
    pub fn heed_keys(&mut self, pause: Duration) -> Result<bool, Failure> {
        let keys = self.terminal.keys(pause);
        for key in &keys {
            match key {
                Key::Character('q') | Key::Interrupt => return Ok(true),
                Key::Escape => self.is_open = false,
                Key::Character('p' | ' ') => self.pause(),
                Key::Character('s') => self.sort = self.sort.next(),
                Key::Down | Key::Character('j') => self.choose(self.chosen + 1),
                Key::Up | Key::Character('k') => self.choose(self.chosen.saturating_sub(1)),
                Key::Enter => {
                    self.choose(self.chosen);
                    self.is_open = !self.is_open;
                }
                Key::Character(_) => {}
            }
        }
        if !keys.is_empty() {
            self.order();
            self.draw()?;
        }
        Ok(false)
    }

    /// Pauses, or goes on.
    fn pause(&mut self) {
        self.paused = match self.paused.take() {
            None => Some((self.rates.clone(), self.happenings.clone())),
            Some(_) => None,
        };
    }

    fn order(&mut self) {
        let has_name = |table: &&TableNow| table.labels.iter().any(|label| !label.is_empty());
        let mut tables: Vec<TableNow> = self.now.tables.iter().filter(has_name).cloned().collect();
        self.sort.order(&mut tables);
        let is_chosen = |table: &TableNow| Some(&table.labels) == self.chosen_table.as_ref();
        let place = tables.iter().position(is_chosen).unwrap_or(self.chosen);
        self.chosen = place.min(tables.len().saturating_sub(1));
        self.tables = tables;
    }

    /// Chooses the table at a place.
    fn choose(&mut self, place: usize) {
        self.chosen = place.min(self.tables.len().saturating_sub(1));
        self.chosen_table = self.tables.get(self.chosen).map(|table| table.labels.clone());
    }

    fn draw(&mut self) -> Result<(), Failure> {
        let paused = self.paused.as_ref();
        let (rates, happenings) =
            paused.map_or((&self.rates, &self.happenings), |(rates, events)| (rates, events));
        let page = Page {
            path: self.path.clone(),
            reading: &self.reading,
            moment: self.moment.as_ref(),
            now: &self.now,
            tables: &self.tables,
            sort: self.sort.name(),
            rates: Some(rates),
            happenings: Some(happenings),
            troubles: &self.troubles,
            chosen: self.chosen,
            is_open: self.is_open,
            is_paused: paused.is_some(),
            has_styles: self.has_styles,
        };
        let lines = lines(&page, self.terminal.size());
        self.terminal.show(lines).map_err(failed)
    }
}

fn failed(source: io::Error) -> Failure {
    Failure::Output { path: "terminal".to_owned(), source }
}
