"""Everyday words for things that people do with anything. See `related.py`."""

ROWS = """
get_back bring_back got_back want_back: restore recover undelete revert return
threw_away thrown_away throw_away threw_out thrown_out: trash delete restore
deleted_by_mistake deleted_accident by_accident removed_mistake: restore undelete recover
lost_file lost_version lost_changes: restore recover reflog
put_off push_back move_later later_date another_day another_time: reschedule postpone snooze update move
bring_forward move_up earlier_date: reschedule move update
hand_over pass_on pass_to hand_to give_to: assign reassign transfer forward owner
take_over takes_over taking_over took_over: assign transfer override import
shut_down shutting_down switch_off turn_off power_off power_down: stop off disable terminate
start_up boot_up power_up fire_up bring_up spin_up: start run up create launch
tear_down take_down bring_down pull_down tore_down: destroy delete remove down unpublish
look_up look_for looking_for hunt_for search_for: search find lookup query get
find_out figure_out: get search find query describe
sign_off give_ahead go_ahead green_light thumbs_up: approve approval confirm accept apply
say_no turn_down turned_down: decline reject respond deny
say_yes said_yes: accept approve confirm respond
turn_up turned_up crank_up too_quiet: volume increase set
turn_down turned_down too_loud: volume decrease set
sign_up signed_up: subscribe register create enroll
sign_in signed_in log_in logged_in: login session auth
sign_out log_out logged_out: logout session end
opt_out stop_getting stop_receiving no_more_mails get_no_more: unsubscribe disable
call_off called_off: cancel
give_up: release cancel delete discard
get_rid got_rid: delete remove trash
clean_up tidy_up tidying: clean cleanup prune delete archive
free_up: release clean prune delete
back_up: backup export copy snapshot dump
set_aside put_aside put_away set_by: stash archive save hold
put_back put_in_place: restore return revert
roll_out rolling_out: deploy deployment rollout apply release
go_back went_back going_back step_back: back revert rollback previous undo
go_on carry_on keep_going went_on: continue resume unpause
go_live went_live make_public make_visible: publish enable release
take_off take_away take_out: remove delete revoke
take_back took_back: revert revoke undo withdraw cancel
cut_off cut_short cut: trim cancel disconnect limit truncate
write_down wrote_down note_down jot_down jot: note create add write log
fill_in fill_out: fill form input
hang_up: end call terminate
pick_up picked_up: answer accept get
put_through: transfer redirect update forward call
wake_up woken_up get_up: alarm page notify start
keep_eye watch_over eye_on look_after: watch monitor subscribe follow
let_see let_look can_see allow_see may_see: share permission access grant
let_in let_into allow_in: invite add unlock grant allow
let_know tell_when let_me_know keep_posted keep_informed keep_loop: notify subscribe alert send watch
who_told who_informed who_notified gets_told: watcher watchers subscriber subscribers notification recipients
tell_as_soon warn warn_when tell_me_when tell_me_if let_me_know_if: alert create reminder monitor notify threshold
alert_me warned: alert create reminder monitor notify threshold
not_any_more no_longer: remove delete unsubscribe disable stop
leave_alone leave_in_peace dont_disturb not_disturb undisturbed disturbed disturb: dnd snooze mute silence focus disturb
hurry speed_up faster: optimize speed performance velocity
side_by_side next_to_each_other: compare
find_difference tell_apart differs differ different changed: compare diff
put_together pull_together: merge combine join create
take_apart break_up: split
cut_into break_into: split chunk
make_smaller shrink smaller: compress resize scale reduce squash
make_bigger make_larger bigger enlarge grow: resize scale extend increase zoom
more_copies copies_of: scale replica replicas copy duplicate
twice second_copy same_again one_more_like another_like another_one_like: duplicate copy clone duplicates
start_over start_again from_scratch: restart reset init clear
try_again once_more: retry rerun restart resend
run_again redo_it: rerun retry restart
put_in_order in_order sort_by arrange: sort order reorder rank
swap_order change_order move_up_in: reorder rank sort
find_again for_later remember_later keep_for_later: bookmark save star pin
stick_top keep_top on_top at_the_top: pin
nail_down: pin lock
out_of_sight out_of_way: hide archive
keep_safe keep_from_being protect_from safe_from nobody_can no_one_can cannot_be: protect lock encrypt restrict prevent
give_access get_in may_open who_may who_can: permission access share grant role acl
keep_out lock_out shut_out kept_out: ban block revoke deny restrict
throw_out thrown_out_of kicked: kick ban remove expel
bad_behaviour misbehaving rude behaves_badly behaving: ban timeout kick mute
set_free freed let_go: release unlock
hold_back held_back: hold pause delay
hold_on wait_for wait_until waits_until: wait sleep poll
cover_for stand_in stands_in fill_in_for step_in: override delegate substitute
can_go may_go must_go no_use: delete remove
put_into put_in put_to belongs_in belongs_into: move add upload enroll
somewhere_else another_folder other_folder another_place elsewhere move_elsewhere: move transfer
hour_later day_later week_later hours_later days_later later_than_planned: update reschedule move
in_case_breaks in_case_goes just_in_case safe_copy safety_copy: backup snapshot
separate_one: create
what_is_open still_open is_still_open not_done not_yet_done outstanding_work open_work: list issues open
when_crowded crowded crowd full_of_people rush packed_with_people: popular_times busy traffic
everybody_looking everybody_talks all_talk popular_now hyped hype craze: trending popular
where_did_we where_did_i did_we_write: search find
anyone_sent have_sent sent_in handed_in: list submissions requests responses
what_answered what_did_people_answer people_answered filled_out answers: responses submissions results
what_people_say did_people_say people_say: comments reviews list
who_follows who_is_following: watchers followers list
how_many_read how_many_saw how_many_people_read how_many_looked how_many_opened: views analytics statistics
people_have_read: views analytics statistics
who_read who_has_read who_opened: views analytics receipts
off_the_internet from_the_internet from_the_web from_website: url fetch download import
by_its_number by_its_id by_number: get retrieve
everyone_company everybody_company whole_company our_company all_employees: domain organization everyone
not_able_to_open must_not_open must_not_see should_not_see not_open_any: revoke remove unshare permission
no_more_than at_most limit_to: limit throttle quota
first_draft rough_version: draft
one_after_another_in_turn: sequence
series_of: sequence series recurring
as_quickly_as: now immediate
need_done_by: deadline due
straight_away immediately right_away: now trigger run
outside_schedule out_of_schedule ahead_of_schedule: trigger run
all_together_or_not or_not_at_all all_or_none: transaction
add_more_like: append add
in_a_row_of: list
lots_of: bulk batch
hundreds_of dozens_of thousands_of many_of_them: bulk batch
make_copy take_copy: copy duplicate backup clone
full_list complete_list: list all
just_the_names: list
short_look quick_look: preview summary get
keep_list: list watchlist
choose_between pick_one: select
check_whether check_if find_out_if see_if see_whether: check get validate
has_permission is_allowed may_i am_i_allowed: permission check auth
which_rights what_rights which_permissions what_may: permissions roles grants privileges
without_asking_again silent_mode: auto
allowed_folders may_you_read may_you_touch you_may_read: allowed directories
step_back_in_history: back
time_machine turn_back_clock: restore history
say_hello greet welcome: message send
apologise apologize say_sorry: message send reply
congratulate: message send reaction
complain_about: issue ticket create
mirror mirrors in_step in_sync keep_same: sync synchronize replicate
switch_to change_to go_over_to swap_to: switch transition update set
hand_round pass_round: share
cross_out strike_out: delete complete remove
blacken blacked_out black_out black_bar: redact mask
scramble make_anonymous anonymous anonymise: redact anonymize
slim slimmer: compress optimize
rearrange shuffle_around: reorder move sort
glue stick_together: merge join concat
split_up divide: split
top_up recharge refill: add credit increase
lower_it reduce: decrease reduce set update
raise_it higher_up: increase set update
how_old age_of: created history metadata info
what_size: size metadata
in_which_language: language
used_most: usage top
where_used who_uses what_uses used_by: usage references dependencies
check_health feel_well: health check status
warm_up: heat
out_of_date: stale update
bring_up_to_date up_to_date newest_version latest_version: update upgrade sync refresh pull
register_me: subscribe register enroll
cost_me costs_me: price cost
give_star star_it: star favorite
wait_a_bit sleep_for: wait
not_read_yet not_read as_not_read: unread
by_accident accidentally by_mistake unintentionally in_error wrongly: restore undo recover undelete untrash void
older_copies older_copy earlier_copies former_copies copies_before previous_copies: versions revisions history
look_before looked_before was_before: versions revisions history
which_versions what_versions: versions revisions list
which_rules what_rules rules_sort sorts: filters rules list
thrown_away_when deleted_when when_deleted when_removed files_thrown deleted_automatically: lifecycle retention expire
nobody_should_see nobody_sees nobody_can_see not_everybody_see only_i_see keep_private: private visibility restrict
keep_secret: private visibility restrict
should_come_before come_before_others goes_before: rank reorder priority
shipped has_shipped we_shipped: release deploy ship
saving_mode save_energy: eco preset
automatically_move automatically_sort sort_automatically always_move: filter rule create
what_programs which_programs programs_run: processes top list
more_than_once: duplicates
it_work did_it_work did_work went_well succeeded did_it_go_through went_through successful: status get result
moved_house new_address has_moved: address update
wrong_address: address update
without_opening: preview
what_takes_up takes_up eats_up taking_space: usage size large disk
how_looked: history version
which_have_i my_own: my list
what_else: list related
something_wrong anything_wrong any_problems problems_with: status health errors list
wait_for_approval who_must_approve who_approves: approval approvers
how_does_it_work how_to_use: help documentation describe
what_settings which_settings how_set_up how_is_set: settings config get
change_settings set_it_up: settings config update
turn_it_on: enable activate
stop_using: disable deactivate
was_late: delay
the_same_for change_for_all for_all_of_them: bulk batch
numbers_of figures_of: statistics report metrics
put_end_to: end stop close terminate
who_sent who_wrote_me: sender search
give_reason: comment note
keep_in_loop everybody_in_loop: reply_all cc
list_everything everything_we_have: list
in_writing: transcript text
switch_off_for_good: decommission delete
it_is_urgent hurry_up: priority urgent
give_more give_less: update set limits
make_it_so: set update
start_anew begin_again: reset restart init
stay_same: keep lock
nuke zap scrap ditch bin axe dump_it chuck toss wipe_out: delete remove trash destroy
throw_out: delete remove trash
grab fetch_me pull_out hand_me give_me show_me let_me_see i_want_to_see i_need_to_see: get show list read download
stick_in pop_in shove chuck_in pop_into stick_into toss_into: add upload put
ping_somebody poke hit_up shout_out give_shout: message send notify
tweak fiddle touch_up: update edit set
peek eyeball glance check_out have_look take_look look_at: view get read preview
rundown lowdown roundup recap: summary overview report
chase chase_up: reminder follow
bump: update rank version
spin_down wind_down: stop scale delete
whip_up knock_together draw_up set_going put_up craft compose: create draft
beef_up: scale increase resize
iron_out sort_out: resolve fix
dig_up dig_out track_down get_hold hunt_down: find search locate
hush shut_up: mute timeout silence
ruined ruin spoiled spoilt messed_up mess_up destroyed_by_mistake screwed_up: restore revert undo version
linked_with connected_with connected_to linked_to goes_with hangs_with: associations relations links list
pair_up tie_to tie_together hook_up wire_up connect_with: link associate connect integration add
loop_in bring_along: add invite follower
get_going get_started kick_off: start run init
bail_out drop_out: leave cancel
mix_together: merge combine
line_up: queue schedule
call_it_done call_it_day: complete close end
tick_it: complete check
pencil_in: schedule create event
run_past: review approval
push_through let_it_through let_through is_fine looks_good: approve merge accept review
hold_off: pause snooze
dial_back: reduce decrease rollback
blow_away: delete clear flush
make_room: clean prune delete
root_out weed_out: remove find duplicates
keep_from keep_off: block prevent
keep_track: track watch log monitor
let_run: run continue resume
show_up turn_up_in: appear list
fall_back: rollback revert
crack_open: open read
wave_through: approve
stand_for: explain describe
go_over go_through: review read list
send_round: send share broadcast
take_note: note log add
come_up_with: suggest create
point_out: comment flag
write_up: create document note
read_up: read search documentation
look_back: history log
fill_me_in bring_me_up: summary overview history
try_to_reach: contact call
how_is_doing how_are_things: status summary health
get_out_of take_out_of kick_out_of: remove archive download
another_chance second_chance: unban restore retry
has_new has_changed_his has_changed_her: update
"""
