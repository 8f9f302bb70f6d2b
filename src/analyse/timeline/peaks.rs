//! The busiest second, ten seconds and minute.

/// A stretch of time with the most WAL of all that are as long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// The second in which it begins, a multiple of its length.
    pub second: i64,
    /// Bytes of the records in it.
    pub total_bytes: u64,
}

/// The busiest stretch of one length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    width: i64,
    /// The stretch at hand.
    now: Option<Peak>,
    best: Option<Peak>,
}

impl Window {
    fn add(&mut self, second: i64, total_bytes: u64) {
        let begin = second - second.rem_euclid(self.width);
        match &mut self.now {
            Some(now) if now.second == begin => now.total_bytes += total_bytes,
            _ => {
                self.end();
                self.now = Some(Peak { second: begin, total_bytes });
            }
        }
    }

    fn end(&mut self) {
        if let Some(now) = self.now.take()
            && self.best.is_none_or(|best| now.total_bytes > best.total_bytes)
        {
            self.best = Some(now);
        }
    }
}

/// The busiest stretches of time; the first of equals.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peaks {
    windows: [Window; 3],
}

impl Default for Peaks {
    fn default() -> Peaks {
        Peaks { windows: [1, 10, 60].map(|width| Window { width, now: None, best: None }) }
    }
}

impl Peaks {
    /// Adds a second, after all others.
    pub fn add(&mut self, second: i64, total_bytes: u64) {
        for window in &mut self.windows {
            window.add(second, total_bytes);
        }
    }

    /// A minute ends here.
    pub fn pause(&mut self) {
        self.windows.iter_mut().for_each(Window::end);
    }

    /// The busiest second.
    pub fn second(&self) -> Option<Peak> {
        self.windows[0].best
    }

    /// The busiest ten seconds.
    pub fn ten_seconds(&self) -> Option<Peak> {
        self.windows[1].best
    }

    /// The busiest minute.
    pub fn minute(&self) -> Option<Peak> {
        self.windows[2].best
    }
}
