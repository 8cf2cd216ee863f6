//! The ledger as its callers see it, on SQLite and on PostgreSQL, through the real service over an in-memory channel.
//!
//! Every case is a function over a [`stack::Stack`]; the list below runs each of them once per engine. Names carry the
//! ids of the generations specification.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    clippy::large_futures,
    reason = "tests say what they expect by failing"
)]

mod adoption;
mod aggregates;
mod bounds;
mod budgets;
mod cancel;
mod follow;
mod lifecycle;
mod machine;
mod messages;
mod node_costs;
mod opening;
mod pages;
mod plans;
mod receipts;
mod reconcile;
mod stack;
mod sweep;
mod waiting;

macro_rules! suite {
    ($($module:ident { $($case:ident)* })*) => {
        mod sqlite {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    crate::$module::$case(crate::stack::Stack::sqlite().await).await;
                }
            )*)*
        }
        mod postgres {
            $($(
                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn $case() {
                    if let Some(stack) = crate::stack::Stack::postgres().await {
                        crate::$module::$case(stack).await;
                    }
                }
            )*)*
        }
    };
}

suite! {
    opening {
        a_row_is_told_back_as_it_was_opened
        g_006_the_same_open_twice_is_one_row
        g_007_a_key_with_another_request_is_refused
        g_008_a_key_is_of_one_user
        g_009_two_opens_at_once_through_two_replicas_are_one_row
        g_010_without_a_key_every_open_is_a_row
        an_id_that_is_taken_is_refused
        bad_fields_are_named_and_nothing_is_opened
    }
    lifecycle {
        g_011_the_same_close_twice_changes_once
        g_012_a_second_outcome_loses_and_is_recorded
        g_013_outputs_on_their_way_keep_the_row_open
        g_014_five_hundred_fast_generations_lose_nothing
        g_022_the_duration_is_the_drivers
        a_submission_is_marked_once
        facets_move_only_forward
        a_proof_that_nothing_left_takes_the_submission_back
        a_stale_driver_is_fenced_everywhere
        errors_are_bounded_and_carry_no_secret
        links_are_an_ordered_set
        a_caller_without_identity_is_refused
    }
    receipts {
        g_026_a_receipt_in_two_parts_is_one_attempt
        g_027_concurrent_generations_keep_their_own_ids
        g_030_of_a_call_inside_of_a_call_the_inner_one_carries_the_charge
        g_031_a_second_submission_is_a_second_attempt
        g_032_two_charges_add_up
        g_033_an_amount_that_is_none_is_left_out
        g_034_a_failure_keeps_its_request_id_and_waits_for_the_bill
        g_036_zero_that_was_stated_is_a_price
        g_057_unknown_is_not_zero
        g_058_the_receipt_beats_the_catalog_and_the_estimate_stays
        g_059_the_catalog_does_not_price_what_failed
        a_bind_that_is_repeated_changes_nothing
        a_settled_row_takes_no_other_request_id
        a_weaker_source_does_not_replace_a_stronger_one
    }
    cancel {
        g_037_a_cancel_closes_the_row_and_orders_its_driver
        g_038_g_039_g_040_what_cannot_be_cancelled_looks_the_same
        g_041_a_second_cancel_says_so
        g_042_a_cancel_through_another_replica_reaches_the_driver
        g_043_of_cancel_and_close_exactly_one_wins
        g_044_stored_assets_of_a_cancelled_row_are_linked_as_late
        g_045_a_cancelled_row_without_assets_has_none
        g_046_a_cancel_before_the_submit_stops_it
        g_047_an_id_that_comes_after_the_cancel_is_bound
        g_048_g_049_what_the_provider_answered_is_kept
        g_053_a_driver_may_cancel_too
        g_042_a_cancel_through_another_replica_is_ordered_without_a_heartbeat
        g_051_the_running_rows_of_a_run_are_cancelled_together
    }
    bounds {
        g_117_sixteen_background_calls_of_a_run_go_on_at_a_time
        background_calls_are_bounded_by_run_thread_and_user_apart
        a_background_call_needs_something_left_of_its_budgets
    }
    budgets {
        a_budget_is_set_read_listed_and_removed
        bad_fields_of_budgets_are_named
        budgets_of_others_do_not_exist
        an_admins_budget_binds_and_cannot_be_changed_by_its_user
        a_budget_bounds_the_calls_of_its_scope
        g_119_of_two_calls_that_do_not_fit_together_one_is_refused
        g_120_a_call_that_uses_it_up_exactly_is_admitted
        g_121_what_may_be_billed_stays_held_until_the_bill
        g_122_holds_outlive_the_process
        g_123_a_close_that_is_repeated_settles_once
        g_124_a_call_without_a_price_is_refused_where_it_must_have_one
        g_125_a_lower_bill_gives_back_in_the_period_of_the_settling
        g_126_calls_whose_callers_went_away_leave_nothing_held
        a_hundred_of_two_hundred_calls_pass_and_failures_give_back
        what_was_never_sent_gives_back
        what_was_sent_without_an_id_counts_as_spent_after_a_day
        a_bill_that_never_comes_is_settled_at_the_estimate
        a_period_ends_at_midnight_of_its_zone
        a_repeated_open_is_not_refused
        calls_without_a_price_hold_what_they_are_taken_to_cost
        calls_are_counted
        a_batch_of_opens_and_closes_leaves_exact_sums
    }
    sweep {
        g_095_driven_rows_are_never_swept
        g_096_a_sweep_by_hand_touches_nothing_that_is_driven
        g_097_a_late_heartbeat_is_in_time_until_the_lease_ends
        g_098_what_was_never_submitted_says_so
        g_099_what_was_submitted_is_interrupted_by_the_restart
        g_080_an_interrupted_row_with_an_id_waits_for_its_bill
        g_115_two_sweeps_at_once_interrupt_each_row_once
        g_094_evidence_replaces_interrupted_once
        evidence_of_another_request_is_refused
        a_swept_driver_is_fenced
    }
    follow {
        a_hello_is_answered_with_the_lease
        the_first_message_has_to_be_hello
        a_goodbye_ends_the_lease_at_once
        a_broken_stream_leaves_the_lease_to_run_out
        a_sole_process_ends_all_other_leases
        a_forgotten_instance_is_told_so
        cancels_that_were_missed_come_with_the_next_stream
    }
    pages {
        g_131_rows_of_one_instant_are_paged_without_gap_or_repeat
        g_132_page_sizes_are_clamped
        g_133_tokens_of_other_lists_are_refused
        g_134_foreign_and_missing_look_the_same
        g_135_nobody_sees_rows_of_others
        filters_are_joined
        a_prefix_finds_a_row_when_it_is_unique
        further_filters_are_joined
        g_136_rows_are_looked_up_by_the_ids_of_their_clients
    }
    aggregates {
        g_061_tiny_amounts_add_up_exactly
        g_062_currencies_are_not_merged
        g_137_what_counts_as_what
        g_138_thirty_thousand_rows_are_summed_without_a_cap
        g_145_the_cost_of_a_job_is_the_sum_of_its_rows
        groups_have_their_keys_and_the_dearest_comes_first
        huge_sums_do_not_overflow
        g_139_days_are_cut_in_the_zone_that_is_asked_for
        projects_surfaces_and_users_are_groups
        what_is_pending_is_told_apart
    }
    node_costs {
        g_140_what_a_provider_stated_is_not_counted_again
        g_141_an_invocation_without_rows_gets_one
        g_142_invocations_do_not_hide_each_other
        g_143_the_rest_is_spread_over_rows_without_a_statement
        g_144_what_is_no_amount_is_refused
        a_charge_waits_for_the_close_of_an_open_row
        a_charge_that_does_not_fit_is_kept_as_a_conflict
    }
    plans {
        pages_are_read_by_their_index
        sums_read_no_more_than_the_rows_of_their_filter
        queues_are_read_by_their_index
    }
    waiting {
        g_127_a_wait_ends_with_its_patience_and_leaves_the_row
        g_128_what_another_replica_closes_is_heard_of_within_a_second
        g_129_settled_rows_answer_at_once_and_unknown_ones_too
        g_130_a_negative_patience_is_refused
        a_close_and_a_cancel_here_wake_at_once
        a_sweep_ends_a_wait
    }
    reconcile {
        g_065_a_minute_after_the_settling_and_not_before
        g_066_a_bill_replaces_the_cost_and_ends_the_queue
        g_067_five_looks_in_vain_exhaust_the_row
        g_068_an_error_is_a_look_in_vain_and_changes_nothing_else
        g_070_a_provider_without_bills_leaves_the_queue_in_one_pass
        g_071_a_denied_key_waits_for_another_one
        g_072_what_is_due_is_not_starved_by_what_is_not
        g_073_two_replicas_drain_the_queue_without_looking_twice
        g_074_a_claim_whose_owner_died_is_free_after_a_minute
        g_075_g_076_a_look_by_hand_spends_no_attempt
        g_077_nobody_looks_for_bills_of_others
        g_078_a_look_by_hand_waits_for_nobody
        g_079_g_080_g_081_every_way_to_settle_is_billed
        g_088_g_089_due_times_are_the_databases
        g_090_a_stale_report_is_ignored
        g_031_a_row_is_done_when_every_submission_is_billed
        what_is_running_or_has_no_id_has_no_bill
        bills_are_looked_for_by_drivers_that_know_of_them
    }
    adoption {
        g_093_a_job_of_a_dead_driver_is_given_to_a_live_one
        g_094_the_old_driver_is_kept_out_and_the_row_closes_once
        g_113_a_goodbye_gives_the_jobs_away_at_once
        g_114_a_job_is_given_away_twenty_times_at_most
        an_order_is_repeated_until_it_is_heard
        a_job_waits_for_a_driver_that_can_take_it_up
        a_job_too_old_is_swept
        two_replicas_give_a_job_to_one_driver
        a_cancelled_job_of_a_dead_driver_is_called_off
    }
    machine {
        no_sequence_leaves_an_absorbing_status
        a_change_of_an_attempt_is_a_version_of_its_row
    }
}
