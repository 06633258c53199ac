//! The guarantees of every store, written against the trait: the checks that each implementation
//! runs in its own tests.
//!
//! Each check gets an empty store whose clock is a [`TickingClock`].
//! [`for_each_conformance_check`](crate::for_each_conformance_check) passes the names of the checks
//! to a macro, so that an implementation can declare a test for each:
//!
//! ```ignore
//! macro_rules! on_my_store {
//!     ($($topic:ident::$check:ident),+ $(,)?) => {$(
//!         #[tokio::test]
//!         async fn $check() {
//!             haft_store::conformance::run(stringify!($check), &MyStore::new(TickingClock::new())).await;
//!         }
//!     )+};
//! }
//! haft_store::for_each_conformance_check!(on_my_store);
//! ```

#![expect(
    clippy::unwrap_used,
    reason = "a check that fails panics, as a test does"
)]

mod conversations;
mod documents;
mod forks;
mod logged;
mod messages;
mod requests;
mod searching;
mod states;
mod values;

pub use self::logged::{assert_logged, sent};
pub use self::values::{TickingClock, conversation, id, tick, user};
use crate::{NewConversation, Store};

/// Passes all checks, as `topic::name`, to a macro.
#[macro_export]
macro_rules! for_each_conformance_check {
    ($each:ident) => {
        $each! {
            conversations::a_new_conversation_reads_back,
            conversations::a_taken_id_is_refused_and_changes_nothing,
            conversations::an_id_nobody_could_type_is_refused,
            conversations::creating_is_all_or_nothing,
            conversations::an_unknown_conversation_reads_as_nothing_and_takes_no_writes,
            conversations::lists_are_per_namespace_and_last_used_first,
            conversations::the_unnamed_namespace_is_default,
            conversations::find_takes_an_id_a_prefix_or_a_name,
            conversations::each_namespace_has_its_current_conversation,
            conversations::a_name_can_be_changed_and_must_be_one,
            conversations::what_is_in_the_trash_is_unknown_until_it_is_restored,
            conversations::namespaces_are_listed_with_what_they_have,
            conversations::what_was_done_and_what_there_is_are_counted,
            messages::messages_keep_their_order_and_move_the_updated_time,
            messages::a_taken_message_id_is_refused_and_changes_nothing,
            messages::the_same_message_id_may_be_in_two_conversations,
            messages::facts_are_about_messages_that_exist,
            messages::a_dropped_append_still_happens,
            messages::a_revision_changes_what_is_given_and_merges_the_rest,
            messages::pages_are_read_from_the_tail,
            states::states_replace_each_other,
            states::a_project_keeps_states_beside_its_conversations,
            states::a_swap_never_undoes_what_another_wrote,
            documents::an_export_is_the_documented_json,
            documents::importing_an_export_gives_the_same_again,
            documents::a_document_that_grew_adds_what_is_new,
            documents::a_document_with_one_message_twice_is_refused_whole,
            requests::requests_are_made_whole_again,
            requests::a_changed_message_is_logged_as_it_was_sent,
            requests::a_failed_write_nobody_waited_for_is_told_by_flush,
            requests::a_request_of_a_fork_is_made_whole_from_what_it_shares,
            requests::a_revised_message_is_logged_as_it_was_sent,
            forks::a_fork_has_the_messages_up_to_its_point,
            forks::a_fork_of_a_fork_reads_all_it_shares,
            forks::what_is_shared_keeps_its_ids_for_itself,
            forks::neither_side_of_a_fork_sees_the_others_revisions,
            forks::a_fork_takes_facts_and_states_of_that_moment,
            forks::a_fork_outlives_what_it_came_from,
            forks::a_fork_that_cannot_be_made_leaves_nothing,
            searching::words_are_found_in_messages,
            searching::chinese_is_found_without_spaces,
            searching::calls_and_results_are_found_and_reasoning_is_not,
            searching::names_and_descriptions_are_found_first,
            searching::search_follows_revisions_forks_and_the_trash,
            searching::a_search_without_words_is_an_error,
        }
    };
}

/// Generates [`run`] from the modules of the checks.
macro_rules! make_run {
    ($($module:ident::$check:ident),+ $(,)?) => {
        /// Runs the check named `check`.
        ///
        /// # Panics
        /// If the store fails the check, or no check has the name.
        pub async fn run(check: &str, store: &dyn Store) {
            match check {
                $(stringify!($check) => Box::pin($module::$check(store)).await,)+
                unknown => panic!("there is no check `{unknown}`"),
            }
        }
    };
}

for_each_conformance_check!(make_run);

async fn create(store: &dyn Store, id: &str, namespace: &str) {
    store
        .create(NewConversation::new(conversation(id), namespace))
        .await
        .unwrap();
}
