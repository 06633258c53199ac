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
            conversations::create_stores_a_conversation_that_reads_back,
            conversations::create_refuses_a_taken_id_and_changes_nothing,
            conversations::create_refuses_ids_that_cannot_be_typed,
            conversations::create_stores_everything_or_nothing,
            conversations::unknown_conversation_reads_as_empty_and_rejects_writes,
            conversations::list_is_per_namespace_and_ordered_by_last_use,
            conversations::unnamed_namespace_is_the_default_one,
            conversations::find_takes_an_id_a_prefix_or_a_name,
            conversations::current_conversation_is_per_namespace,
            conversations::rename_changes_the_name_and_rejects_empty_ones,
            conversations::deleted_conversation_is_unknown_until_restored,
            conversations::namespaces_are_listed_with_counts_and_current_conversation,
            conversations::statistics_count_operations_and_stored_items,
            messages::append_keeps_the_order_and_updates_the_time,
            messages::append_refuses_a_taken_message_id_and_changes_nothing,
            messages::append_accepts_one_message_id_in_two_conversations,
            messages::note_accepts_facts_about_existing_messages_only,
            messages::append_finishes_even_if_its_future_is_dropped,
            messages::update_replaces_given_fields_and_merges_metadata,
            messages::page_reads_messages_from_the_end,
            states::set_state_replaces_the_earlier_document,
            states::project_state_is_separate_from_conversations,
            states::swap_project_state_never_overwrites_another_writers_change,
            documents::export_is_the_documented_json,
            documents::import_of_an_export_gives_an_equal_conversation,
            documents::import_of_a_longer_document_adds_its_new_messages,
            documents::import_refuses_a_document_with_a_repeated_message_id,
            requests::request_is_restored_from_the_log,
            requests::request_keeps_a_changed_message_as_sent,
            requests::flush_reports_a_failed_write_of_a_dropped_future,
            requests::request_of_a_fork_is_restored_from_shared_messages,
            requests::request_keeps_a_revised_message_as_sent,
            forks::fork_has_the_messages_up_to_its_point,
            forks::fork_of_a_fork_reads_all_shared_messages,
            forks::fork_refuses_ids_of_shared_messages,
            forks::fork_and_origin_do_not_see_each_others_revisions,
            forks::fork_copies_facts_and_states_of_its_point,
            forks::fork_survives_the_deletion_of_its_origin,
            forks::fork_that_fails_leaves_no_conversation,
            searching::search_finds_words_in_messages,
            searching::search_finds_chinese_without_spaces,
            searching::search_finds_calls_and_results_but_not_reasoning,
            searching::search_ranks_names_and_descriptions_first,
            searching::search_follows_revisions_forks_and_the_trash,
            searching::search_without_words_is_an_error,
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
