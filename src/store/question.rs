//! Reads of one statement each, which go to the database together.
//!
//! SQLite is spoken to through a thread of the connection's own. A message there and back costs more
//! than most answers, so questions that do not wait for each other are asked in one.

use std::vec;

use super::{Conn, Row, StoreError, Val};

/// One statement that reads, with its arguments and what its rows mean.
pub struct Question<T> {
    statement: Statement,
    read: Reading<T>,
}

/// What the rows of one statement mean.
type Reading<T> = Box<dyn FnOnce(Vec<Row>) -> Result<T, StoreError> + Send>;

/// A statement as it is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    pub(super) sql: &'static str,
    pub(super) args: Vec<Val>,
}

/// What was answered, the rows of one statement after those of another.
pub struct Answers(vec::IntoIter<Vec<Row>>);

/// Takes one's own answers, in the order of the statements.
pub(super) type Reader<T> = Box<dyn FnOnce(&mut Answers) -> Result<T, StoreError> + Send>;

/// Questions that are asked together: one, several, or none.
pub trait Questions: Send + Sized + 'static {
    /// What they are answered with.
    type Answer: Send + 'static;

    /// Says all statements, and gives who reads what comes of them.
    fn pose(self, posed: &mut Posed) -> Reader<Self::Answer>;

    /// The same questions, with something else made of what is answered.
    fn then<T, F>(self, make: F) -> Then<Self, F>
    where
        F: FnOnce(Self::Answer) -> Result<T, StoreError> + Send + 'static,
        T: Send + 'static,
    {
        Then { questions: self, make }
    }
}

/// The statements of all questions, in the order in which they are asked.
#[derive(Debug, Default)]
pub struct Posed(Vec<Statement>);

/// Questions whose answer is made into something else.
pub struct Then<Q, F> {
    questions: Q,
    make: F,
}

impl Answers {
    pub(super) fn of(rows: Vec<Vec<Row>>) -> Self {
        Self(rows.into_iter())
    }
}

impl Posed {
    /// The statements of all of it, and who reads the answers.
    pub(super) fn of<Q: Questions>(questions: Q) -> (Vec<Statement>, Reader<Q::Answer>) {
        let mut posed = Self::default();
        let read = questions.pose(&mut posed);
        (posed.0, read)
    }
}

impl<T: Send + 'static> Question<T> {
    /// A question whose answer is read of all rows at once.
    pub fn of(
        sql: &'static str,
        args: impl Into<Vec<Val>>,
        read: impl FnOnce(Vec<Row>) -> Result<T, StoreError> + Send + 'static,
    ) -> Self {
        Self { statement: Statement { sql, args: args.into() }, read: Box::new(read) }
    }

    /// A question that one row answers, which must be there.
    pub fn one(
        sql: &'static str,
        args: impl Into<Vec<Val>>,
        read: impl FnOnce(&Row) -> Result<T, StoreError> + Send + 'static,
    ) -> Self {
        Self::of(sql, args, move |rows| match rows.first() {
            Some(row) => read(row),
            None => Err(StoreError::inconsistent(sql, "rows", "has no row")),
        })
    }

    /// A question that one row may answer.
    pub fn optional(
        sql: &'static str,
        args: impl Into<Vec<Val>>,
        read: impl FnOnce(&Row) -> Result<T, StoreError> + Send + 'static,
    ) -> Question<Option<T>> {
        Question::of(sql, args, move |rows| rows.first().map(read).transpose())
    }

    /// A question that any number of rows answers.
    pub fn all(
        sql: &'static str,
        args: impl Into<Vec<Val>>,
        read: impl Fn(&Row) -> Result<T, StoreError> + Send + 'static,
    ) -> Question<Vec<T>> {
        Question::of(sql, args, move |rows| rows.iter().map(read).collect())
    }
}

impl Question<bool> {
    /// A question whose answer is a number of things `found`: whether there are any.
    pub fn any(sql: &'static str, args: impl Into<Vec<Val>>) -> Self {
        Self::one(sql, args, |row| Ok(row.int("found")? > 0))
    }
}

impl<T: Send + 'static> Questions for Question<T> {
    type Answer = T;

    fn pose(self, posed: &mut Posed) -> Reader<T> {
        let (statement, read) = (self.statement, self.read);
        let sql = statement.sql;
        posed.0.push(statement);
        Box::new(move |answers| match answers.0.next() {
            Some(rows) => read(rows),
            None => Err(StoreError::inconsistent(sql, "rows", "was not answered")),
        })
    }
}

impl<Q, F, T> Questions for Then<Q, F>
where
    Q: Questions,
    F: FnOnce(Q::Answer) -> Result<T, StoreError> + Send + 'static,
    T: Send + 'static,
{
    type Answer = T;

    fn pose(self, posed: &mut Posed) -> Reader<T> {
        let (read, make) = (self.questions.pose(posed), self.make);
        Box::new(move |answers| make(read(answers)?))
    }
}

/// A question that need not be asked.
impl<Q: Questions> Questions for Option<Q> {
    type Answer = Option<Q::Answer>;

    fn pose(self, posed: &mut Posed) -> Reader<Self::Answer> {
        let read = self.map(|questions| questions.pose(posed));
        Box::new(move |answers| read.map(|read| read(answers)).transpose())
    }
}

/// The same question about several things.
impl<Q: Questions> Questions for Vec<Q> {
    type Answer = Vec<Q::Answer>;

    fn pose(self, posed: &mut Posed) -> Reader<Self::Answer> {
        let all: Vec<_> = self.into_iter().map(|questions| questions.pose(posed)).collect();
        Box::new(move |answers| all.into_iter().map(|read| read(answers)).collect())
    }
}

macro_rules! several {
    ($($kind:ident $name:ident),+) => {
        impl<$($kind: Questions),+> Questions for ($($kind,)+) {
            type Answer = ($($kind::Answer,)+);

            fn pose(self, posed: &mut Posed) -> Reader<Self::Answer> {
                let ($($name,)+) = self;
                $(let $name = $name.pose(posed);)+
                Box::new(move |answers| Ok(($($name(answers)?,)+)))
            }
        }
    };
}

several!(A a, B b);
several!(A a, B b, C c);
several!(A a, B b, C c, D d);
several!(A a, B b, C c, D d, E e);
several!(A a, B b, C c, D d, E e, F f);

impl Conn<'_> {
    /// Asks all of it, as one message where the database takes several statements in one.
    pub async fn ask<Q: Questions>(&mut self, questions: Q) -> Result<Q::Answer, StoreError> {
        let (posed, read) = Posed::of(questions);
        read(&mut Answers::of(self.fetch_each(&posed).await?))
    }
}

impl<T> std::fmt::Debug for Question<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Question").field("sql", &self.statement.sql).finish_non_exhaustive()
    }
}

impl<Q: std::fmt::Debug, F> std::fmt::Debug for Then<Q, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Then").field(&self.questions).finish()
    }
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answers({})", self.0.len())
    }
}

/// Puts several statements into one text, with their arguments one after another: `$2` of a statement
/// before which five arguments stand is `$7`.
pub(super) fn joined<'a>(
    statements: impl IntoIterator<Item = &'a Statement>,
) -> (String, Vec<Val>) {
    let (mut text, mut args) = (String::new(), Vec::new());
    for statement in statements {
        let mut parts = statement.sql.split('$');
        text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
            let number = part.strip_suffix(rest).and_then(|number| number.parse::<usize>().ok());
            text.push('$');
            match number {
                Some(number) => text.push_str(&number.saturating_add(args.len()).to_string()),
                None => text.push_str(part.strip_suffix(rest).unwrap_or_default()),
            }
            text.push_str(rest);
        }
        text.push_str(";\n");
        args.extend_from_slice(&statement.args);
    }
    (text, args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_numbered_on_from_statement_to_statement() {
        let statement = |sql, args: &[i64]| Statement {
            sql,
            args: args.iter().map(|arg| Val::from(*arg)).collect(),
        };
        let (text, args) = joined(&[
            statement("select $1 + $2", &[1, 2]),
            statement("select '$.nothing'", &[]),
            statement("select $2, $1 where $2 = $3", &[3, 4, 5]),
            statement("select $10", &[6]),
        ]);
        assert_eq!(
            text,
            "select $1 + $2;\nselect '$.nothing';\nselect $4, $3 where $4 = $5;\nselect $15;\n"
        );
        assert_eq!(args, (1..=6).map(Val::from).collect::<Vec<_>>());
    }
}
