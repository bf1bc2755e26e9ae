"""Everyday words about version control, tests and builds, and tickets. See `related.py`."""

ROWS = """
code_review look_over_code look_at_code somebody_check second_pair: review reviewer pull_request request
my_changes proposed_change suggested_change contribution: pull_request merge_request pr diff
take_change bring_change put_change_into main_line: merge pull_request rebase
own_copy copy_of_project: fork clone
get_project project_to_my code_to_my: clone checkout download
separate_line side_line line_of_work work_separately: branch worktree create
only_that_fix only_one_change one_fix single_commit that_one_commit one_commit: cherry_pick
other_branch another_branch: branch checkout switch cherry_pick merge
park_work unfinished_work put_work_aside work_aside set_work_aside: stash save
unsaved_changes uncommitted not_committed what_have_i_changed have_i_touched: status diff unstaged changes
parked_work shelved shelve: stash
hunt_bug which_commit_broke since_when_broken commit_introduced broke_it: bisect blame log
who_line who_last_line wrote_line line_written: blame
undo_commit take_commit_back bad_commit: revert reset
one_commit_out_of several_commits_into many_commits together_commits: squash rebase
tidy_commits: rebase squash
correct_last_commit change_last_commit fix_last_commit forgot_in_commit: amend
new_version_out ship_version version_out: release create tag publish
what_is_in_version whats_changed_version release_text: release notes changelog
mark_version mark_as_version name_version mark_this_commit: tag release
send_to_server commits_up share_commits: push
get_newest get_others_changes others_work changes_of_others catch_up: pull fetch sync
ready_for_commit next_commit: stage add
not_in_commit take_out_of_commit: unstage reset
ignore_files leave_out_files: ignore gitignore exclude
lost_commit lost_commits lost_branch where_was_i: reflog
star favourite_project: star repository
code_snippet snippet: gist snippet
security_hole security_holes vulnerability: security alert scanning advisory dependabot vulnerability secret
vulnerabilities vulnerable insecure hole holes leak: security alert scanning advisory dependabot vulnerability secret
leaked leaky: security alert scanning advisory dependabot vulnerability secret
outdated_packages outdated_libraries libraries: dependencies dependency dependabot package
lines_changed change_line_by_line: diff compare changes
in_conflict both_changed: conflict merge
build_red build_failed red_build tests_fail tests_red went_red red: failed pipeline workflow job run status
build_again once_more_build run_tests_again: rerun retry pipeline workflow job
build_output what_build_said build_said: log job trace artifact
build_robot robot automatic_tests automatic_build: pipeline workflow ci action runner
manual_step start_by_hand waiting_step: play trigger manual job
password_for_build build_password: secret variable
protect_main nobody_push pushing_to_main: protect branch protection
joins_project collaborate working_with_us work_with_us: collaborator member invite add
bug bugs defect_report problem_report problems: issue ticket bug create
todo_for something_to_do chore: task issue create
whats_on_my_plate my_plate my_work assigned_to_me mine what_should_i_do what_must_i_do: my assigned list issues tasks
who_does who_works_on who_should somebody_else_do: assign assignee
two_weeks_plan iteration this_iteration round_of_work: sprint cycle iteration
sprint: cycle sprint
cycle: sprint cycle
how_far_along progress getting_on: progress status burndown current report velocity
how_quick_team team_speed how_much_team: velocity report
how_hard effort how_big_task difficulty: estimate points story
time_spent hours_worked worked_hours spent_hours hours_on: worklog log time
blocked_by waits_for depends_on hang_together: link relation dependency dependencies block
same_problem reported_twice doubled: duplicate link merge
big_topic bigger_topic big_goal big_goals big_feature company_goals: epic initiative goal objective
split_task smaller_tasks break_task task_below tasks_below: subtask sub_issue create child
move_task_to next_column into_column in_progress to_done: transition status state update
which_states possible_states possible_steps steps_possible: transitions statuses workflow
most_important_first up_the_list to_top_of_list: rank priority
waiting_list wish_list wishes unplanned: backlog
customer_wish customers_want feature_wish: customer_need request feature
incoming unsorted newcomers new_arrivals: triage inbox
put_aside_until come_back_until: snooze
category sticker coloured keyword keywords marker: label tag category
own_field extra_field additional_field more_fields: custom_field field property
saved_search saved_filter my_searches: filter view saved
due_by must_be_ready by_friday: due_date deadline milestone
goal_date target_date stage_of_project: milestone
told_about_changes told_changes informed_changes get_notified: watcher watchers notification subscriber subscribe
hears_about: watcher watchers notification subscriber subscribe
be_told i_want_to_know: watch subscribe notification
not_told_any_more stop_being_told stop_telling: unwatch unsubscribe delete
former_versions older_version old_version earlier_version previous_version: version history revision restore
former_version how_it_was: version history revision restore
change_history who_edited edit_history: history changelog audit versions
fork_project own_account into_my_account somebody_project: fork
cover_my_code coverage: test report
who_may_commit: collaborators members
merge_when_green merge_when_ready when_tests_through: auto_merge merge accept
approve_code code_is_fine: approve review
say_about_code comment_on_line: review comment
ask_colleague_to_look ask_for_review: request reviewers
files_changed_pr: pull_request files
close_bug bug_done bug_is_fixed: close issue update
reopen_bug: reopen issue update
talk_about_ideas forum: discussion
milestone_progress: milestone
deploy_key: key
code_search where_in_code_is: search code
read_file_repo file_from_repo: file contents
change_file_repo file_to_repo: create_or_update file push commit
many_files_repo: push files
project_members: members list
runner: runner agents
artifact zip_of_build result_of_build: artifacts download
variables_of_pipeline: variables
branch_gone remove_branch branch_can_go branch_finished: delete branch
into_main branch_into bring_branch: merge
untracked unknown_files: clean
what_commits last_commits recent_commits: log commits
new_repo begin_repo repo_in_this_folder start_repo: init create repository
who_changed_line changed_this_line: blame
second_working_copy: worktree
name_of_remote other_remote: remote
empty_commit: commit
move_my_commits_on_top: rebase
repo_in_repo nested_repo: submodule
secret_work only_security_team: confidential private security
time_on_ticket hours_on_ticket spent_on_ticket i_spent spent_two: worklog log time spend
ticket_waits: blocked link
ticket_to_other_project: move issue
rank_up: rank
past_of_ticket: changelog history
what_is_in_sprint: sprint cycle issues list
start_sprint end_sprint: sprint start complete
files_on_ticket attached attached_files: attachments download attachment
who_reported: reporter
ideas_for_product roadmap: roadmap initiative project
status_report weekly_report: project_update status update
issues_of_customer: customer_need
many_tickets_same_time tickets_at_once: batch bulk
vote_for_ticket: vote
not_push no_direct_push no_pushes direct_pushes: protect branch
lay_aside edits_aside lay_edits changes_aside: stash
fix_commit commit_detail: commit
ticket_before_others: rank
move_up_backlog into_backlog: backlog rank
look_at_ticket: issue ticket get
which_repos our_repos: repositories list
which_branches: branches list
who_committed: contributors commits
sync_fork: fork sync
compare_branches: compare diff
what_are_we_working: sprint cycle current
tell_project_state project_state how_is_project: project_update status
quarrel heated_discussion stop_discussion nobody_comment no_more_comments: lock issue
tests_green are_tests_green did_build_pass build_pass checks_passed tests_passed is_build: status pipeline workflow runs
bring_branch_up_to_date branch_behind: update branch rebase
start_action kick_off_action deploy_from_chat: run trigger workflow pipeline
stop_build stop_action: cancel workflow pipeline
all_news_read clear_notifications mentions who_mentioned_me: notifications mark_read
key_for_script token_for: access_token token
thread_settled point_settled objection_settled: resolve thread discussion comment
how_tickets_connected kinds_of_link: link types relation
part_of_epic under_epic into_epic: epic link
part_of_product areas_of_product: component
version_finished version_is_out: release version
customer_asks_for_help helpdesk_queue: service_desk queue
tie_to_website ticket_to_page: remote link url attach
put_file_ticket file_to_ticket: attachment upload attach
search_saved_run run_saved: run filter view
throw_ticket_in_archive: archive issue
say_something_on say_something_to say_on comment_under: comment add
merge_blocked cannot_merge: conflicts status
who_is_assigned whose_ticket: get issue assignee
take_ticket ticket_for_me i_will_do_it: assign issue
tickets_this_week finished_tickets: list search issues
big_task_into pieces_of_task: sub_issue subtask create
deploy_failed why_build_failed build_broke: job logs trace pipeline status
newest_release latest_release: get latest release
give_colleague_access add_colleague new_developer: add member collaborator invite
who_may_see_code: members permissions
ready_for_review wants_review: request reviewers
not_ready_yet: draft
throw_branch: delete branch
"""
