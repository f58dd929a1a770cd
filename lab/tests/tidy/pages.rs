//! Pages of the documentation: their quoted texts, and the comparison of generated pages with the files. `CORRIDOR_BLESS=1` rewrites
//! generated pages.

use std::path::Path;

use super::sources::read;

/// Texts in backticks of a line.
pub(crate) fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// Fails if a file differs from the expected page; writes the page instead if `CORRIDOR_BLESS` is set.
pub(crate) fn assert_page(path: &Path, page: &str) {
    let found = read(path);
    if found == page {
        return;
    }
    if std::env::var_os("CORRIDOR_BLESS").is_some() {
        return std::fs::write(path, page).expect("the page can be written");
    }
    let line = |text: &str, at: usize| text.lines().nth(at).unwrap_or("(end of the page)").to_owned();
    let at = found.lines().zip(page.lines()).take_while(|(found, page)| found == page).count();
    panic!(
        "{}:{}: the page has\n  {}\nand its sources give\n  {}\nrun `CORRIDOR_BLESS=1 cargo test -p corridor-lab \
         --test tidy` to write it again",
        path.display(),
        at + 1,
        line(&found, at),
        line(page, at)
    );
}
