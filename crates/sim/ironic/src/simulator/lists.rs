//! The answers to lists of nodes since the last change. A change feed reads the same list every few seconds, and tests let days pass
//! in which no node changes.

use http::Method;
use metal3_ironic::version::Microversion;

use super::State;
use crate::core::{Answer, Context, Failure};

/// Longer answers are computed again: there are many nodes in them, and one of them changes soon.
const LONGEST: usize = 1 << 16;
/// A feed reads two lists, each with one version.
const MOST: usize = 4;

/// A query with its microversion.
type List = (Vec<(String, String)>, Microversion);

#[derive(Debug, Default)]
pub(super) struct Lists(Vec<(List, Answer)>);

impl Lists {
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    fn find(&self, context: Context<'_>) -> Option<&Answer> {
        let is_same = |(query, version): &List| *query == context.request.query && *version == context.microversion;
        self.0.iter().find(|(list, _)| is_same(list)).map(|(_, answer)| answer)
    }

    fn add(&mut self, context: Context<'_>, answer: &Answer) {
        let length = answer.body.as_ref().map_or(0, |body| body.len());
        if length <= LONGEST && self.0.len() < MOST {
            let list = (context.request.query.clone(), context.microversion);
            self.0.push((list, answer.clone()));
        }
    }
}

impl State {
    /// Answers a request, after all that is due until then.
    pub(super) fn answer(&mut self, context: Context<'_>) -> Result<Answer, Failure> {
        let path = context.request.segments();
        let is_read = context.request.method == Method::GET;
        // Other reads may change a node, as that of its boot device does.
        let changes = !(is_read && matches!(path.as_slice(), ["nodes"] | ["nodes", _]));
        if self.core.advance(context.now) || changes {
            self.lists.forget();
        }
        if !is_read || path != ["nodes"] {
            return self.core.answer(context);
        }
        if let Some(known) = self.lists.find(context) {
            return Ok(known.clone());
        }
        let answer = self.core.answer(context)?;
        self.lists.add(context, &answer);
        Ok(answer)
    }
}
