//! Guests of a session: the links by which they come, and how an owner takes their access away.
//!
//! All guests of a role come with the same token. Each one who joins also gets a token of their own, which is the secret by
//! which they come back; further pictures of their page have more. When an owner removes a guest, all their own tokens are
//! deleted, the token of their link is replaced, and their connections may request nothing more. The other guests who are
//! connected stay, and reconnect with their own tokens; those of the same link who are away need its new token.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use array::{Error, ErrorKind, Result};

use crate::token::Token;

/// Most own tokens of guests that are kept: four times the participants of a session. A guest whose token is dropped needs a
/// valid link to come back.
const MAX_OWN_TOKENS: usize = 256;
/// Most own tokens of one guest: those of the pictures of a page, and of the page before it was loaded again.
const MAX_TOKENS_OF_GUEST: usize = 32;
/// Most connections that are known for one guest: those of a page that reconnects often, and its further pictures.
const MAX_PASSES: usize = 64;

/// Role of guests in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestRole {
    /// Changing their own view, presenting it, pinning notes and saving bookmarks.
    Steer,
    /// Following others, chatting and pointing.
    Watch,
}

impl GuestRole {
    /// Returns the name of the role in links and options.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Steer => "steer",
            Self::Watch => "watch",
        }
    }
}

/// Token of a link for guests, and the role that it gives.
#[derive(Clone, Debug)]
pub struct Guest {
    /// Token that they present.
    pub token: Token,
    /// Role in the session.
    pub role: GuestRole,
}

/// Number of somebody who came by a link; it stays the same when they come back with an own token.
type GuestNumber = u64;

/// Token of one guest who has joined.
#[derive(Debug)]
struct OwnToken {
    token: Token,
    role: GuestRole,
    /// Token of the link by which the guest came.
    link: Token,
    guest: GuestNumber,
    passes: VecDeque<Weak<GuestPass>>,
}

#[derive(Debug, Default)]
struct GuestState {
    links: Vec<Guest>,
    own: VecDeque<OwnToken>,
    newest_guest: GuestNumber,
}

/// Links for guests, and the guests who came by them.
#[derive(Debug, Default)]
pub struct Guests(Mutex<GuestState>);

/// Outcome of removing a guest.
#[derive(Clone, Debug)]
pub struct WithdrawnLink {
    /// Role of the link by which the guest came.
    pub role: GuestRole,
    /// New token of that link; `None` if it had been replaced before.
    pub token: Option<Token>,
}

impl Guests {
    /// Creates the guests who may come by these links.
    #[must_use]
    pub fn new(links: Vec<Guest>) -> Self {
        Self(Mutex::new(GuestState { links, ..GuestState::default() }))
    }

    /// Returns the links that are valid now.
    #[must_use]
    pub fn links(&self) -> Vec<Guest> {
        self.state().links.clone()
    }

    /// Returns the role that an offered token gives. All comparisons are always made.
    pub(crate) fn role(&self, offered: &str) -> Option<GuestRole> {
        let state = self.state();
        let links = state.links.iter().map(|link| (&link.token, link.role));
        let own = state.own.iter().map(|own| (&own.token, own.role));
        links.chain(own).fold(None, |found, (token, role)| token.matches(offered).then_some(role).or(found))
    }

    /// Returns the pass of a new connection that offers this token; `None` if it is not the one of a guest.
    pub(crate) fn pass(self: &Arc<Self>, offered: &str) -> Option<Arc<GuestPass>> {
        let mut state = self.state();
        let own = state.own.iter().find(|own| own.token.matches(offered));
        let (link, guest) = match own {
            Some(own) => (own.link.clone(), own.guest),
            None => {
                let link = state.links.iter().find(|link| link.token.matches(offered))?.token.clone();
                state.newest_guest += 1;
                (link, state.newest_guest)
            }
        };
        let pass = Arc::new(GuestPass {
            guests: Arc::clone(self),
            link,
            guest,
            connection: AtomicU64::new(0),
            has_joined: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
        });
        if let Some(own) = state.own.iter_mut().find(|own| own.token.matches(offered)) {
            pass.has_joined.store(true, Ordering::Relaxed);
            own.add(&pass);
        }
        Some(pass)
    }

    /// Takes away the access of the guest with this own token or, if that is not kept any more, of the one who joined by this
    /// connection; `None` if there is no such guest.
    ///
    /// # Errors
    /// `Io` if the system has no source of randomness for the new token of the link.
    pub fn remove(&self, own_token: &str, connection: u64) -> Result<Option<WithdrawnLink>> {
        let new = Token::random()?;
        let mut state = self.state();
        let by_token = state.own.iter().position(|own| own.token.matches(own_token));
        let at = by_token.or_else(|| state.own.iter().position(|own| own.is_by(connection)));
        let Some(at) = at else { return Ok(None) };
        let Some(own) = state.own.remove(at) else { return Ok(None) };
        let is_of_guest = |other: &OwnToken| other.guest == own.guest;
        for pass in
            state.own.iter().filter(|other| is_of_guest(other)).chain([&own]).flat_map(|own| &own.passes)
        {
            if let Some(pass) = pass.upgrade() {
                pass.is_removed.store(true, Ordering::Relaxed);
            }
        }
        // Without a connection nobody can tell whether a token of this link is one that the guest has kept.
        state.own.retain(|other| {
            !is_of_guest(other) && (other.is_connected() || !other.link.matches(own.link.secret()))
        });
        let link = state.links.iter_mut().find(|link| link.token.matches(own.link.secret()));
        let token = link.map(|link| {
            link.token = new.clone();
            new
        });
        Ok(Some(WithdrawnLink { role: own.role, token }))
    }

    fn is_valid(&self, link: &Token) -> bool {
        self.state().links.iter().any(|known| known.token.matches(link.secret()))
    }

    fn state(&self) -> MutexGuard<'_, GuestState> {
        // A panic elsewhere does not leave the lists inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl GuestState {
    /// Returns the place of the oldest token of the guest who has most of them.
    fn oldest_of_most(&self) -> Option<usize> {
        let mut counts = HashMap::<GuestNumber, usize>::new();
        self.own.iter().for_each(|own| *counts.entry(own.guest).or_default() += 1);
        let most = counts.values().max()?;
        self.own.iter().position(|own| counts.get(&own.guest) == Some(most))
    }
}

impl OwnToken {
    fn is_connected(&self) -> bool {
        self.passes.iter().any(|pass| pass.strong_count() > 0)
    }

    /// True if a guest with this token has joined by a connection.
    fn is_by(&self, connection: u64) -> bool {
        let has_joined = |pass: &GuestPass| pass.connection.load(Ordering::Relaxed) == connection;
        connection > 0 && self.passes.iter().any(|pass| pass.upgrade().is_some_and(|pass| has_joined(&pass)))
    }

    fn add(&mut self, pass: &Arc<GuestPass>) {
        self.passes.retain(|old| old.strong_count() > 0);
        if self.passes.len() >= MAX_PASSES {
            self.passes.pop_front();
        }
        self.passes.push_back(Arc::downgrade(pass));
    }
}

/// Access of one connection of a guest.
#[derive(Debug)]
pub struct GuestPass {
    guests: Arc<Guests>,
    link: Token,
    guest: GuestNumber,
    /// Number of the connection by which the guest has joined; 0 before.
    connection: AtomicU64,
    /// The guest takes part, and keeps that access when their link is replaced.
    has_joined: AtomicBool,
    is_removed: AtomicBool,
}

impl GuestPass {
    /// Checks that the guest still has access.
    ///
    /// # Errors
    /// `Denied` for a guest who was removed, and for one who has not joined if their link was replaced.
    pub fn check(&self) -> Result<()> {
        let denied = |why| Err(Error::new(ErrorKind::Denied, why));
        if self.is_removed.load(Ordering::Relaxed) {
            return denied("an owner of the session removed you");
        }
        if !self.has_joined.load(Ordering::Relaxed) && !self.guests.is_valid(&self.link) {
            return denied("this link is not valid any more; ask an owner of the session for a new one");
        }
        Ok(())
    }

    /// Notes that the guest takes part in the session by this connection, with the secret by which they come back; it becomes a
    /// token of their own.
    ///
    /// # Errors
    /// `Invalid` if the secret is no legal token.
    pub fn joined(self: &Arc<Self>, secret: &str, role: GuestRole, connection: u64) -> Result<()> {
        let token = Token::chosen(secret)?;
        self.connection.store(connection, Ordering::Relaxed);
        self.has_joined.store(true, Ordering::Relaxed);
        let mut state = self.guests.state();
        if let Some(own) = state.own.iter_mut().find(|own| own.token.matches(secret)) {
            own.add(self);
            return Ok(());
        }
        let is_own = |own: &OwnToken| own.guest == self.guest;
        if state.own.iter().filter(|own| is_own(own)).count() >= MAX_TOKENS_OF_GUEST {
            let oldest = state.own.iter().position(is_own);
            state.own.remove(oldest.unwrap_or(0));
        } else if state.own.len() >= MAX_OWN_TOKENS {
            // The oldest one without a connection, such as that of a further picture of a page that reconnected; else one of the
            // guest who has most.
            let unused = state.own.iter().position(|own| !own.is_connected());
            let at = unused.or_else(|| state.oldest_of_most());
            state.own.remove(at.unwrap_or(0));
        }
        let mut own =
            OwnToken { token, role, link: self.link.clone(), guest: self.guest, passes: VecDeque::new() };
        own.add(self);
        state.own.push_back(own);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guests() -> Arc<Guests> {
        let link = |text, role| Guest { token: Token::chosen(text).unwrap(), role };
        Arc::new(Guests::new(vec![link("s", GuestRole::Steer), link("w", GuestRole::Watch)]))
    }

    fn join(guests: &Arc<Guests>, offered: &str, secret: &str) -> Arc<GuestPass> {
        let pass = guests.pass(offered).unwrap();
        pass.joined(secret, guests.role(offered).unwrap(), 1).unwrap();
        pass
    }

    #[test]
    fn a_guest_who_was_removed_has_no_access_and_the_others_keep_theirs() {
        let guests = guests();
        let (bob, eve, dan) =
            (join(&guests, "s", "bob"), join(&guests, "s", "eve"), join(&guests, "w", "dan"));
        let second_of_bob = guests.pass("bob").unwrap();
        let not_joined = guests.pass("s").unwrap();
        not_joined.check().unwrap();

        let withdrawn = guests.remove("bob", 0).unwrap().unwrap();
        assert_eq!(withdrawn.role, GuestRole::Steer);
        for pass in [&bob, &second_of_bob, &not_joined] {
            assert_eq!(pass.check().unwrap_err().kind(), ErrorKind::Denied);
        }
        for pass in [&eve, &dan] {
            pass.check().unwrap();
        }
        assert!(guests.role("bob").is_none() && guests.role("s").is_none() && guests.pass("s").is_none());
        let new = withdrawn.token.unwrap();
        assert_eq!(guests.role(new.secret()), Some(GuestRole::Steer));
        assert_eq!(guests.links()[0].token.secret(), new.secret());
        // Those who stay reconnect with their own tokens.
        assert_eq!(
            (guests.role("eve"), guests.role("dan")),
            (Some(GuestRole::Steer), Some(GuestRole::Watch))
        );
        guests.pass("eve").unwrap().check().unwrap();
        assert_eq!(guests.role("w"), Some(GuestRole::Watch), "another link stays valid");
    }

    #[test]
    fn two_guests_of_one_link_are_removed_with_one_new_link() {
        let guests = guests();
        let _passes = [join(&guests, "s", "bob"), join(&guests, "s", "eve")];
        let first = guests.remove("bob", 0).unwrap().unwrap().token.unwrap();
        assert!(guests.remove("eve", 0).unwrap().unwrap().token.is_none(), "the link was replaced before");
        assert_eq!(guests.links()[0].token.secret(), first.secret());
        assert!(guests.remove("eve", 0).unwrap().is_none());
    }

    #[test]
    fn own_tokens_are_bounded() {
        let guests = guests();
        let pass = guests.pass("s").unwrap();
        for i in 0..MAX_TOKENS_OF_GUEST + 7 {
            pass.joined(&format!("secret{i}"), GuestRole::Steer, 1).unwrap();
            pass.joined(&format!("secret{i}"), GuestRole::Steer, 1).unwrap();
        }
        assert_eq!(guests.state().own.len(), MAX_TOKENS_OF_GUEST);
        assert!(guests.role("secret6").is_none() && guests.role("secret7").is_some());
    }

    #[test]
    fn a_guest_who_was_removed_cannot_come_back_by_another_token_of_theirs() {
        let guests = guests();
        let page = join(&guests, "s", "page");
        page.joined("pane", GuestRole::Steer, 1).unwrap();
        drop(join(&guests, "s", "closed-tab"));
        let other = join(&guests, "s", "other");
        let again = guests.pass("pane").unwrap();
        guests.remove("page", 0).unwrap().unwrap();
        for token in ["page", "pane", "closed-tab", "s"] {
            assert!(guests.role(token).is_none(), "{token}");
        }
        assert!(page.check().is_err() && again.check().is_err());
        assert!(other.check().is_ok() && guests.role("other").is_some());
    }

    #[test]
    fn tokens_without_a_connection_are_dropped_first() {
        let guests = guests();
        let _stays = join(&guests, "s", "stays");
        for i in 0..2 * MAX_OWN_TOKENS {
            join(&guests, "w", &format!("pane{i}"));
        }
        assert_eq!(guests.role("stays"), Some(GuestRole::Steer));
        assert_eq!(guests.state().own.len(), MAX_OWN_TOKENS);
    }

    #[test]
    fn a_guest_with_more_pictures_than_tokens_is_removed_by_the_connection() {
        let guests = guests();
        let mallory = guests.pass("s").unwrap();
        for i in 0..=MAX_TOKENS_OF_GUEST {
            mallory.joined(&format!("picture{i}"), GuestRole::Steer, 7).unwrap();
        }
        assert!(guests.role("picture0").is_none(), "its token is not kept");
        assert!(guests.remove("picture0", 8).unwrap().is_none(), "another connection");
        guests.remove("picture0", 7).unwrap().unwrap().token.unwrap();
        assert!(mallory.check().is_err() && guests.role("s").is_none() && guests.role("picture9").is_none());
    }

    #[test]
    fn guests_with_many_tokens_do_not_drop_those_of_others() {
        let guests = guests();
        let _bob = join(&guests, "s", "bob");
        let passes: Vec<_> = (0..20).map(|_| guests.pass("w").unwrap()).collect();
        for (number, pass) in passes.iter().enumerate() {
            for i in 0..MAX_TOKENS_OF_GUEST {
                pass.joined(&format!("{number}-{i}"), GuestRole::Watch, 9).unwrap();
            }
        }
        assert!(guests.role("bob").is_some() && guests.state().own.len() == MAX_OWN_TOKENS);
    }
}
