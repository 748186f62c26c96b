//! What this client has written or seen of each group, so that its reads show at least that.

use std::collections::HashMap;
use std::sync::Arc;

use cachesql_types::Token;
use hyper::header::HeaderValue;
use parking_lot::Mutex;

/// The newest token of one group.
#[derive(Debug, Default)]
pub(crate) struct Session(Mutex<Option<Token>>);

impl Session {
    /// Keeps what an answer says it saw, if that is further. Positions in two logs do not compare: a group under another
    /// name is another log, and what was seen of the former has no meaning there.
    pub(crate) fn saw(&self, text: &str) {
        // A name that no request header can carry could not be sent back.
        let Some(token) = text.parse::<Token>().ok().filter(|_| HeaderValue::from_str(text).is_ok()) else { return };
        let mut newest = self.0.lock();
        let is_older = newest.as_ref().is_some_and(|known| known.group == token.group && known.index >= token.index);
        if !is_older {
            *newest = Some(token);
        }
    }

    /// The newest token.
    pub(crate) fn token(&self) -> Option<Token> {
        self.0.lock().clone()
    }

    fn forget(&self) {
        *self.0.lock() = None;
    }
}

/// The sessions of all groups, by the names that the routes give them; they outlive the routes.
#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<HashMap<String, Arc<Session>>>);

impl Sessions {
    /// The session of a group.
    pub(crate) fn of(&self, group: &str) -> Arc<Session> {
        self.0.lock().entry(group.to_owned()).or_default().clone()
    }

    /// Forgets what was seen, of every group.
    pub(crate) fn forget(&self) {
        self.0.lock().values().for_each(|session| session.forget());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(session: &Session) -> Option<String> {
        session.token().map(|token| token.to_string())
    }

    #[test]
    fn a_token_never_goes_back() {
        let session = Session::default();
        assert_eq!(text(&session), None);
        session.saw("g:7");
        session.saw("g:5");
        assert_eq!(text(&session).as_deref(), Some("g:7"));
        session.saw("g:12");
        assert_eq!(text(&session).as_deref(), Some("g:12"));
        session.saw("nonsense");
        session.saw("g\u{1}:99");
        assert_eq!(text(&session).as_deref(), Some("g:12"));
        session.saw("another:3");
        assert_eq!(text(&session).as_deref(), Some("another:3"));
    }

    #[test]
    fn threads_that_meet_keep_the_furthest() {
        let session = Session::default();
        std::thread::scope(|scope| {
            for thread in 0..8_u64 {
                let session = &session;
                scope.spawn(move || {
                    let mut before = 0;
                    for index in 0..1_000 {
                        session.saw(&format!("g:{}", index * 8 + thread));
                        let now = session.token().expect("one was seen").index.0;
                        assert!(now >= before && now >= index * 8 + thread);
                        before = now;
                    }
                });
            }
        });
        assert_eq!(text(&session).as_deref(), Some("g:7999"));
    }

    #[test]
    fn groups_have_sessions_of_their_own() {
        let sessions = Sessions::default();
        sessions.of("a").saw("a:1");
        assert_eq!(text(&sessions.of("a")).as_deref(), Some("a:1"));
        assert_eq!(text(&sessions.of("b")), None);
        sessions.forget();
        assert_eq!(text(&sessions.of("a")), None);
    }
}
