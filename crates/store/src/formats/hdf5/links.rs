//! Resolution of links: paths through groups, soft links, and links to other files, up to a limit.

use super::files::{LinkError, LinkedFiles, ObjectId};
use super::library::{LinkTarget, ObjectKind};

/// Most HDF5 links that are followed to one object.
const MAX_LINKS: usize = 32;
/// Most groups on the path of links to one HDF5 object.
const MAX_PATH_STEPS: usize = 256;

/// Object that a link or path leads to, else the reason why there is none.
type LinkResult = Result<ObjectId, LinkError>;

/// Resolves a link of the group `within`.
pub(super) fn resolve(files: &mut LinkedFiles, within: ObjectId, target: &LinkTarget) -> LinkResult {
    LinkResolver { files, links: 0, steps: 0 }.target(within, target)
}

/// Resolves a path in a file; see [`resolve`].
pub(super) fn resolve_path(files: &mut LinkedFiles, file: usize, path: &str) -> LinkResult {
    let mut way = LinkResolver { files, links: 0, steps: 0 };
    let root = way.root(file)?;
    way.path(root, path)
}

struct LinkResolver<'a> {
    files: &'a mut LinkedFiles,
    links: usize,
    steps: usize,
}

impl LinkResolver<'_> {
    fn target(&mut self, within: ObjectId, target: &LinkTarget) -> LinkResult {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(LinkError::Refused(format!("more than {MAX_LINKS} links on the way")));
        }
        match target {
            LinkTarget::Object(token) => Ok(ObjectId { file: within.file, token: *token }),
            LinkTarget::Soft(path) => self.path(within, path),
            LinkTarget::External { file, path } => {
                let file = self.files.follow(within.file, file)?;
                let root = self.root(file)?;
                self.path(root, path)
            }
            LinkTarget::Other => Err(LinkError::Refused("a link of a kind that is not known".into())),
        }
    }

    fn root(&self, file: usize) -> LinkResult {
        let root = self.files.get(file).and_then(|file| file.library.root()?.token());
        root.map(|token| ObjectId { file, token }).map_err(|e| LinkError::of(&e))
    }

    /// Follows a path from a group, or from its file's root where it begins with a slash.
    fn path(&mut self, within: ObjectId, path: &str) -> LinkResult {
        let mut at = if path.starts_with('/') { self.root(within.file)? } else { within };
        for name in path.split('/').filter(|name| !name.is_empty() && *name != ".") {
            self.steps += 1;
            if self.steps > MAX_PATH_STEPS {
                return Err(LinkError::Refused(format!("more than {MAX_PATH_STEPS} groups on the way")));
            }
            let group = self.files.object(at).map_err(|e| LinkError::of(&e))?;
            let target = match group.kind() {
                ObjectKind::Group => group.link(name),
                _ => None,
            };
            drop(group);
            let target =
                target.ok_or_else(|| LinkError::Missing(format!("nothing is named `{name}` there")))?;
            at = match target {
                LinkTarget::Object(token) => ObjectId { file: at.file, token },
                other => self.target(at, &other)?,
            };
        }
        Ok(at)
    }
}
