"""Everyday words about metrics, logs, errors, alarms and incidents. See `related.py`."""

ROWS = """
measured_values curve curves over_last_hours readings gauge: metrics query
alarm alarms warning_when alert_when: monitor alert rule alerting
no_alarms alarms_quiet quiet_alarms mute_alarms silence_alarms planned_work: silence mute downtime maintenance
alarms_again alarms_through let_alarms again_alarms: unmute end maintenance cancel downtime silence
which_alarms_ring alarms_now going_off ringing currently_alarming: firing alerts list monitors triggered
where_alarms_go who_gets_alarms send_alarms alarms_to: contact_point notification policy route receiver
lines_in_log what_programs_wrote written_log logged: logs search query
slow_request where_time_goes request_path_through path_of_request: trace traces spans
robot_visits test_from_outside checked_from_outside: synthetics test
promise_to_customers reliability error_budget: slo
real_users visitors_experience users_experience: rum session
board boards wall_display overview_screen: dashboard
picture_of_graph graph_picture graph_as_picture: snapshot render panel image
mark_in_graph mark_on_graph mark_on_chart: annotation
one_chart single_graph: panel
where_data_from data_comes_from: datasource
who_looks_at: usage
which_crashes crash crashes what_crashed app_crashed blow_up bugs_in_production: error issue exception crash
which_users_hit how_many_users_hit affected affected_people hit_by: users affected impact
where_in_code stack code_line_error: stacktrace trace event
new_errors_since_version worse_than_before better_than_before new_errors: release compare regression health
new_version_errors: release compare regression health
not_our_fault dont_care noise_errors: ignore archive
error_done fixed_error is_fixed fixed: resolve resolved
what_user_did clicks_before video_of_session session_video watch_user: replay session breadcrumbs
errors_explained why_error cause_of_error: root_cause seer analyze suspect
belongs_whom: ownership owner
wake_somebody get_somebody_up ring_engineer call_engineer: page incident trigger create
we_have_problem big_problem site_is_down house_on_fire outage: incident create
i_take_care im_on_it i_am_on_it i_have_seen_it taking_care: acknowledge assign
problem_over problem_solved fire_is_out: resolve close
more_people_help get_help more_hands helpers: responders add
who_is_on_duty who_has_to_get_up who_is_called duty_tonight tonight_on_duty: oncall schedule
swap_shift take_my_shift shift_of: override schedule
bosses management_informed directors important_people: stakeholders subscribe status_update
tell_world_problem tell_customers_problem: status_update status_page
same_incident_twice one_incident: merge
what_was_done_incident order_of_events: timeline log
learned_from post_mortem what_we_learned: postmortem review
similar_problem_before happened_before seen_before had_before: past incidents related similar
on_average average_time mean_time typically: analytics statistics metrics mean average report
who_is_next_called then_whom after_whom: escalation policy
endpoints_slowest slowest slowest_pages: slow transactions performance queries
downtime_planned maintenance_tonight do_maintenance maintenance_work: downtime schedule maintenance silence
apm call_each_other calls_which which_services_call: dependencies service traces
service_list which_services: services list
live_cpu: stats
send_number own_measure: submit metric
host_list machines_reporting: hosts list
log_in_graph: annotation
security_signals attack attacks attackers hackers hacked: security signals
graphs_on_board one_board: dashboard
share_board public_board: share public
who_changed_board: versions history
folder_for_boards: folder
which_data_sources: datasources
promql: prometheus query
logql: loki query
flame where_cpu_goes: profile pyroscope
on_call_plan: oncall schedule
declare_outage declare_incident raise_alarm: incident create
alarm_set_up how_is_alarm: get monitor rule
note_on_alarm: note incident
give_incident isnt_for_me not_for_me is_not_mine: reassign
quiet_for_hour come_back_alarm: snooze
maintenance_over window_over: end maintenance_window
way_to_reach phone_of_engineer contact_way: contact_method
who_when_on_call: schedule oncall
which_teams: teams list
error_again came_back_error: regression reopen
sourcemaps source_maps unreadable_stack: upload source_maps
how_many_errors error_count: stats count
key_for_app dsn: dsn keys client_key
which_commit_error: suspect commit
who_gets_error: assign owner
deploys_known: deploys releases
ignore_error: ignore archive
full_event stack_trace: event get
count_log_lines log_lines_per lines_per: aggregate logs
who_is_called_at_night called_at_night gets_called changing_weekly rotation: schedule oncall create
we_released released_version: release create
alarms_last_night what_alarms: alerts incidents list history
who_got_paged: incident log notifications
test_alert try_alarm: test
how_datadog_usage what_we_use bill_datadog: usage summary
new_graph new_board: create dashboard
send_event_datadog: post event
own_log_to: send logs
number_from_logs: log metric
page_checks check_site_regularly site_check: synthetics test
written_analysis: notebook
alarm_away remove_alarm: delete monitor rule
quiet_host quiet_machine: mute host
old_board board_before: restore dashboard version
link_to_graph: deeplink
show_board_outsiders: public dashboard share
test_connection connection_works: test datasource
what_metrics_exist: metric names list
which_values_label: label values
error_patterns: pattern logs
mail_report_weekly: schedule report
crash_report_read: issue event details
which_browsers_affected tag_values: tags distribution
who_released: releases deploys
user_complained_error user_feedback: feedback
scheduled_jobs_watch: cron monitors
let_robot_find_cause ai_find_cause: analyze seer autofix
hand_incident incident_to_colleague: reassign incident
more_important_incident: priority incident
tell_bosses bosses_informed: stakeholders subscribe status update
run_playbook emergency_plan: incident workflow start
cover_weekend take_weekend_shift swap_duty: override schedule
remove_override: delete override
connect_tool_alerts: integration
who_after: escalation policy
change_was_made tell_change: change_event
burn_cpu burns_cpu: profile pyroscope
dealt_with is_dealt: resolve resolved
errors_of_app app_errors: sentry issues
site_slow why_slow page_slow: traces slow transactions performance
users_complain: feedback issues errors
anything_burning is_anything_wrong: firing alerts incidents list monitors
last_outage earlier_outages: past incidents list
who_fixes: assign responders
stop_waking_me not_wake let_me_sleep: snooze mute silence
too_many_alarms alarm_flood: mute silence
trend_of_errors errors_rising: stats metrics query
graph_to_report: render snapshot
monthly_uptime uptime: slo history
"""
