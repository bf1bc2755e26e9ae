"""Everyday words about containers, clusters and infrastructure. See `related.py`."""

ROWS = """
run_container start_box: run container start
what_runs running_containers what_is_running running: list containers ps pods
what_prints what_container_prints printed prints output_of: logs log
into_container inside_container in_container: exec
image_from_file make_image build_image: build image
get_image download_image: pull image
image_up image_to_registry: push image
disk_full_docker old_images unused_images images_unneeded: prune
frozen_container freeze: pause unpause
exit_code finishes until_finished: wait
keep_data_container data_survives: volume
containers_talk talk_to_each: network connect
several_containers_together whole_stack: compose up stack
copy_into_container file_into_container: cp copy
holes_in_image: scan
more_instances five_copies more_machines more_of_it copies_web copies_deployment: scale replicas autoscaler
as_needed grows_with_load adapt_to_load: autoscaler autoscale hpa
old_version_again previous_deployment back_to_version: rollback undo
how_is_deployment_going rolled_out: rollout status
crash_loop keeps_crashing keeps_restarting crashes_over: describe logs events pod restart
box_cluster boxes: pod pods
reach_from_browser under_domain domain_name host_name: ingress route dns domain
my_machine_to_cluster local_port: port_forward
passwords_cluster keep_password: secret secrets
settings_cluster settings_for_app: configmap config
take_machine_out machine_repair empty_machine off_machine machine_maintenance: drain cordon node
machine_again_use machine_back: uncordon
nothing_new_on_machine no_new_work: cordon taint
once_only_task one_time_task: job create
timed_task at_night: cronjob schedule cron
separate_area_cluster areas_cluster: namespace
may_i_in_cluster am_i_allowed allowed_to: can_i auth permission
resource_limit how_much_may: quota limit
package_cluster chart_install: helm install
cluster_machines machines: nodes node host
infrastructure infra cloud_setup: terraform plan apply state
what_would_change what_will_change preview_of_changes: plan
bring_into_effect make_changes_real put_into_effect carry_out: apply
everything_made all_infrastructure everything_terraform: destroy
known_to_terraform exists_already take_under_control under_control created_by_hand made_by_hand: import
differs_from_code reality somebody_changed_by_hand changed_outside behind_our_back: drift detect refresh
written_nicely indentation pretty_code: fmt format lint
build_anew again_from_scratch replace_resource: taint replace recreate
stuck_lock lock_left still_locked locked_by: force_unlock unlock lock
what_results values_come_out results_of: output outputs
graph_of what_depends depend_on break_if break: dependencies graph relations
cost_of_infrastructure: cost estimate
wait_approval approval_pending waiting_approval: apply approve discard run
rules_companies_wide guard_rails: policy
cves cve weak_points: scan vulnerabilities security
crashloopbackoff imagepullbackoff oomkilled pod_not_start pod_pending: describe events logs pod
why_pod why_not_starting wont_start does_not_start: describe events logs
pod_died died_before before_it_died: logs previous pod
one_pod_away: delete pod
restart_app restart_all_pods fresh_pods: rollout restart
yaml manifest_file: apply manifest
machine_in_cluster: node
disk_for_pod claim_disk: pvc volume persistent
env_of_app: env configmap
more_memory more_cpu: limits resources update
traffic_rules who_talks_to_whom: network_policy
image_ready_made find_image image_for public_image: search hub image
layers_of_image how_image_made: history image
all_parts_up parts_of_project services_running: ps status compose
stop_everything_project: compose down
stop_container container_that: stop container
throw_container container_away: remove container
name_container: rename
signal_container: kill
room_docker_uses: disk df usage
save_container_as_image: commit image
move_image_file: save load export
other_tag: tag
terraform_new_folder first_terraform: init
terraform_values settings_for_terraform: variables
who_locked: lock
run_history past_runs: runs list
env_per_stage own_state: workspace
forget_resource no_longer_managed: state remove rm
other_address_in_state: state move mv
update_state what_really_exists what_really really_running: refresh state
module_from_internet ready_module: registry module search
who_caused_cost: cost
tf_files tf_file: terraform fmt
look_tidy tidy_code pretty_files: fmt format
download_providers providers: init providers
kubernetes_cluster: k8s kubernetes
which_passwords passwords_stored stored_passwords: secrets secret list
broken_release release_is_broken release_broken: rollback
go_back_to_the_one back_to_one_before: rollback previous
programs_in_container inside_container_run run_inside: top processes
processes: top list
wrong_deploy: rollback
app_not_answering service_not_reachable: health status logs describe
what_ports open_ports: ports services
open_a_port: expose port
copy_to_pod: cp copy
where_is_pod_running: pod get
put_machine_back: uncordon
test_network: ping
images_i_have which_images: images list
login_registry: login registry
who_changed_infrastructure: history runs
cost_of_change: cost estimate
put_new_version_cluster new_image_cluster new_version_of_app: set image deployment
change_cluster work_with_other_cluster other_cluster: switch context
stop_nightly_job pause_nightly: suspend cronjob
keep_pods_away: taint
how_busy_nodes: top nodes
events_in_cluster: events
storage_claims: persistent_volume
public_docker: hub
what_changed_in_container: diff
container_to_image: commit
clean_docker tidy_docker: prune
network_for_containers: network
containers_log_all: compose logs
log_into_registry: login registry
which_plugins plugin_versions: providers lock
show_as_graph picture_of_resources: graph
try_expression calculate_terraform: console eval
old_state state_again: rollback state version
test_infrastructure: test
do_not_rebuild no_rebuild: untaint
set_value_workspace: variable workspace
app_needs_more more_power too_slow_app handle_more: scale replicas autoscaler limits
new_version_online put_online: deploy rollout set_image
shell_in log_into_container open_shell: exec
why_container_stopped container_crashed: logs inspect
copy_out_of_container: copy from
which_version_runs version_running: get deployment image
remove_everything_unused: prune system
what_is_deployed: list deployments
who_uses_memory greedy: top stats
"""
