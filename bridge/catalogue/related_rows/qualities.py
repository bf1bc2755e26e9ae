"""Everyday words for what something is like: amounts, times, states and what happened to it. See `related.py`."""

ROWS = """
worth value worthy: price value quote rate
how_much_cost how_expensive what_cost costs_how: price cost fare rate fee
how_far far_from far_is: distance matrix route travel_time
how_long_take how_long_does take_to_get: duration time travel distance eta analytics
how_many number_of: count list total
how_often frequency: count rate frequency statistics
how_busy busiest: traffic popular usage
how_big how_large how_much_space: size disk usage quota storage dbsize
how_full nearly_full almost_full running_out: quota usage disk storage limit
how_healthy is_ok is_alright working_properly all_right up_and_running is_up alive: health status check state ping
healthy: health status check state ping
how_fast slow slowness sluggish crawling takes_ages: performance slow latency speed profile
is_down not_working does_not_work broken doesnt_work stopped_working broke: error status incident failed health failure
what_happened who_did_what who_did what_changed who_changed: history log audit changelog events activity timeline
changed_when went_wrong: history log audit changelog events activity timeline
when_changed last_changed changed_last: history log revision activity version
who_wrote who_made whose_fault who_touched which_author: blame author history owner log
who_am_i logged_in_as my_own_account which_account_am: whoami me viewer user myself profile current
who_is: user get profile lookup person
in_charge responsible who_owns belongs_to: owner assignee assign oncall lead
on_duty who_has_duty duty: oncall schedule shift
whats_new newest latest_ones: list recent latest updates
whats_next coming_up upcoming soon: next upcoming list event scheduled
at_the_moment right_now currently now_on: current now active running live
in_the_past years_ago back_then used_to_be long_ago years_back last_year last_month: history historical past report
last_week since: history historical past report
over_time over_years through_years: history trend historical timeseries
from_now_on every_time each_time automatically by_itself on_its_own: automation rule trigger automatic schedule create
every_day every_morning every_night every_week nightly hourly_run each_day: recurring schedule cron daily
again_and_again over_and_over every_monday each_week weekly repeats: recurring repeat series
once_a_week once_a_month monthly: recurring schedule subscription
in_one_go all_at_once at_once together_in_one several_at_once many_at_once in_bulk: batch bulk multi
one_by_one step_by_step: iterate list sequence steps
at_the_end at_the_bottom to_the_end underneath: append end
for_ever forever for_good permanently: permanently delete permanent
for_a_while for_a_moment for_now for_an_hour temporarily: temporary pause snooze hold timeout stash
run_out ran_out runs_out: expire expiry ttl low
goes_away disappears_after vanish die_after lives_for: expire ttl lifecycle expiration
how_long_until time_left left_until: ttl expiry remaining
nobody_uses no_one_uses not_needed leftover unneeded superfluous leftovers: unused prune orphan cleanup stale
old_stuff old_ones outdated: archive prune stale expired
what_kinds what_types which_kinds: list types options
what_exists what_is_there what_have_we which_ones do_we_have have_we are_there do_i_have: list
what_looks_like look_inside look_into inside_of whats_inside what_is_in: get read list contents describe view
exactly_says wording words_say: text content read
first_few first_lines beginning_of top_of: head first preview
last_few last_lines end_of: tail last latest
in_detail more_about all_about everything_about details: get describe details info retrieve
in_short short_version gist_of nutshell: summary summarize overview
make_sense_of meaning_of what_means: explain describe
make_sure is_correct is_right is_valid sure_that: validate verify check assert
really_exists is_there_any still_there: exists check get
without_touching without_changing what_would would_happen see_what_would: dry_run preview plan check
try_out play_around: test sandbox experiment run
best_way: optimize recommend directions
like_this similar alike resemble similar_ones: similar related search recommendations vector nearest
nearest_to closest: nearby nearest
most_used most_liked favourite favorite most_popular: top popular starred favorites
best_ones most_successful: top ranking
worst biggest_losers: losers worst bottom
count_in came_in arrived have_arrived: adjust increment add receive arrivals inventory
count_up plus_one add_one one_up: incr increment counter
count_down one_less minus_one: decr decrement
add_up sum_up total_of sum_of: sum aggregate total
kept_where stored_where where_is where_are: location find locate search path
where_am_i my_location: location geolocation locate position
give_name call_it name_it give_another_name other_name new_name rename_it: rename name update
what_called: name get search
short_name: alias slug nickname
put_in_words write_about: create note description
spread_word tell_everybody tell_everyone tell_all announce_to: announce publish broadcast send post notify
write_to drop_line message_to: send message mail
ask_opinion ask_everybody what_think take_vote vote voting let_vote: poll survey vote
ask_question put_question: ask query comment create
heard_nothing no_answer unanswered not_answered waiting_for_answer: pending unread open reply
react_with heart smiley emoticon smile thumbs: reaction react emoji like
well_done praise applaud: like reaction kudos
without_reading already_seen as_seen seen: read mark
not_yet_read have_not_read havent_read unseen: unread
not_finished unfinished half_finished work_in_progress half_done: draft stash open incomplete
important_first most_urgent urgent urgently urgency more_important: priority escalate urgent
step_up nobody_reacts nobody_reacting next_level higher_level: escalate escalation
took_ages long_overdue too_late overdue: late overdue due delay
hidden secretly only_for_us only_we cannot_see not_see internally: internal private hide ephemeral
only_she_sees only_he_sees just_for_her: ephemeral private direct
in_private privately one_person personally: direct private dm
readable_for_people human_readable: format pretty
translate_into other_language in_french in_german: translate translation language
into_another_format as_a_pdf as_pdf make_a_pdf as_csv to_csv: export convert download pdf csv
print print_out paper_copy: pdf export print
show_picture_of draw drawing: plot render chart draw create
stuck hangs hanging frozen got_stuck: stuck kill restart cancel stop interrupt unpause resume
misspelt typo wrong_word spelling_mistake: edit update replace correct
wrong_by_mistake made_mistake mistake: undo revert fix edit correct
clash collide conflict_with overlap: conflict conflicts
count_words letters_in: count length
get_hold_of reach reach_somebody reachable: contact call send expose endpoint ping
show_to_world from_outside outside_world expose: publish expose ingress public port
get_ready prepare: prepare init draft create setup
finish_up wrap_up over_and_done: close complete finish end
begin_with start_with: start init create
came_from comes_from where_from origin_of: source referrer origin traces
next_one following_one: next
one_before the_one_before former: previous
there_and_back round_trip: return round
as_file to_my_computer onto_my_computer to_my_laptop: download export
from_my_computer from_my_laptop: upload
tick_off check_off mark_done is_done is_finished: complete close resolve done
reopen_it open_again come_back: reopen restore return
rather_than instead_of: replace swap update
everything_in everything_that all_of_it: all list empty bulk
nothing_left empty_out throw_everything everything_out: empty clear truncate flush purge
put_name_on put_under whose_job: assign owner
part_of_it just_one_part only_a_part: extract part filter get
by_hand manually myself: manual
stay_informed be_informed hear_about kept_informed: subscribe watch notification follow
disappear disappear_completely completely_gone gone_for_good: delete permanently
who_committed committed_what: log commits
comes_in comes_in_automatically happens_automatically: trigger automation rule
lot_to_do high_load under_load: autoscaler scale
past_ones earlier_ones: list history past
goes_below gets_below gets_above goes_above below_zero under_zero reaches rises_above falls_below: threshold alert
where_does_lead: link href url attribute
per_month per_day per_week per_group: aggregate group
fast_we_promise we_promise: sla policy
looking_up_faster search_is_slow make_faster: index optimize
earlier_states earlier_state state_before former_states: revisions versions history
"""
