//! `corridor cache`

use std::path::PathBuf;

use array::Result;
use client::directories::UserDirectories;
use client::text::{plain, size};
use serde_json::json;
use store::{SIDE_CACHE_BYTES, SideCache};

use crate::cli::{CacheAction, CacheOptions};
use crate::common::print;

pub(crate) fn run(options: &CacheOptions) -> Result<()> {
    let folder: PathBuf = match &options.cache_dir {
        Some(folder) => folder.clone(),
        None => UserDirectories::of_user()?.cache,
    };
    let side = SideCache::new(&folder, SIDE_CACHE_BYTES);
    let shown = plain(&folder.display().to_string());
    if matches!(options.action, Some(CacheAction::Clear)) {
        let (count, size_bytes) = side.clear();
        let (left, left_bytes) = side.usage();
        if options.json {
            return print(
                &json!({"folder": folder, "deleted": count, "bytes": size_bytes, "left": left}).to_string(),
            );
        }
        print(&format!("{shown}: {count} entries deleted, {}", size(size_bytes)))?;
        return match left {
            0 => Ok(()),
            left => print(&format!(
                "{left} files of {} stay: they are not entries of this user's cache",
                size(left_bytes)
            )),
        };
    }
    let (count, size_bytes) = side.usage();
    if options.json {
        let result =
            json!({"folder": folder, "entries": count, "bytes": size_bytes, "limit_bytes": SIDE_CACHE_BYTES});
        return print(&result.to_string());
    }
    print(&format!(
        "{shown}: {count} entries, {} of at most {}\n  delete them:  corridor cache clear",
        size(size_bytes),
        size(SIDE_CACHE_BYTES)
    ))
}
