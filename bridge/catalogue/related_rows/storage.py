"""Everyday words about databases and the storage of objects. See `related.py`."""

ROWS = """
ask_database run_sql look_in_database database_question: query execute select sql
what_tables which_tables structure columns_of_table what_columns build_of_table: describe table schema list columns
speed_up_query query_slow slow_queries why_query_slow query_takes: explain index analyze slow
how_database_runs query_plan how_is_query_executed: explain
make_search_faster lookup_faster: index create
who_is_connected open_connections connected_now: connections clients sessions activity
hold_each_other waiting_each_other blocked_queries waits_lock: locks blocking
stop_query query_hangs runaway: cancel terminate kill
dead_rows space_from_table reclaim: vacuum
table_sizes biggest_tables: table size
empty_table all_rows: truncate delete
put_rows new_rows add_row: insert
change_rows: update
new_column one_more_column: alter add column
database_users who_may_log database_accounts: role roles user
may_read_table allowed_tables: grant privileges
take_rights rights: grant revoke permission privileges role
all_or_nothing: transaction
second_database standby copies_lag behind_main lagging: replication replica lag status
save_database dump: backup dump export
put_back_database: restore import
remember_value keep_value put_value store_value: set put store
read_value what_value value_behind: get
value_gone forget_value: delete expire
number_higher counter counting visitors: incr increment counter
waiting_line line_end queue_end: list push queue lpush rpush
take_from_line first_in_line: pop lpop rpop
leaderboard high_score scores points ranking best_players best_player: zadd zrange score sorted_set zrangebyscore
is_member contains in_the_set: sismember smembers contains
all_keys which_keys: keys scan
wipe_everything wipe_database everything_gone: flush flushdb drop
similar_embeddings embedding embeddings vectors nearest_neighbours meaning_search: vector search similarity
listen_channel broadcast_to: publish subscribe
event_log: stream xadd xrange
memory_used memory_eaten eat_memory eating_memory eat memory_hungry: memory usage stats info top
cpu_load load_of busy_machines machine_load: cpu top metrics stats usage
bucket_list which_buckets: buckets list
file_into_bucket put_file_bucket: put upload object
out_of_bucket file_from_bucket: get download object
visible_to_everybody visible_everyone everybody_can_see open_to_everyone: public acl policy
temporary_link link_that_expires link_for_an_hour download_link one_hour_link: presigned url temporary
cheaper_storage old_files_cheaper deep_freeze rarely_used: lifecycle storage_class transition
cannot_be_deleted nobody_delete nobody_erase protect_backup erase_nothing: lock retention hold protect legal
never_deleted: lock retention hold protect legal
keep_old_versions every_version_kept: versioning
big_file_in_pieces large_upload huge_file: multipart upload
broken_upload interrupted_upload: multipart abort upload
other_websites_use other_domain: cors
website_from_bucket host_page: website hosting
who_downloaded_what requests_recorded: logging access_log
another_region second_region: replication
scrambled unreadable cipher: encryption encrypt
file_hosting_place: bucket
tags_of_bucket stickers_of_bucket: tags tagging
who_may_bucket who_read_bucket: acl policy
copy_between_buckets another_bucket: copy object
folder_to_bucket local_to_cloud mirror_local: sync
bucket_website website_bucket site_bucket: website hosting
object_info file_details: head metadata
keys_with_beginning: list prefix
get_from_glacier frozen_object: restore object
where_is_bucket: location region
notify_on_upload when_file_uploaded: notification event
key_exists: exists
key_lives_until: ttl expire
several_values many_values: mget mset
part_of_hash field_of_hash: hget hset
json_document_redis: json
cache_numbers hit_rate: info stats
slow_commands: slowlog
configuration_of_redis: config
who_uses_redis: clients
members_of_set: smembers
both_sets in_common: intersection sinter
location_radius around_point: geo radius search
message_to_subscribers: publish
atomic: transaction multi
script_in_redis: eval lua
look_at_rows some_rows sample_rows first_rows: query select preview
how_many_rows rows_are_in: count rows
foreign points_to_table connected_tables hang_together_tables: foreign_keys relations
stored_function stored_code trigger_code: function source
saved_query query_as_table: view materialized
refresh_view: refresh materialized
import_csv load_csv: import copy load
csv_out_of_table table_as_csv: export
remove_column column_away: drop column
remove_table table_away: drop table
tidy_table: vacuum analyze
extensions_of_db plugins: extensions
size_of_database database_big: database_size
unused_index: index usage
sql_statements several_statements: transaction execute query
who_blocks: locks
kill_connection: terminate
amazon amazon_storage: s3 aws
postgresql psql pg: postgres
keys_starting: scan keys
how_many_in_list: llen length
random_element: random
remove_from_set: srem
put_into_set: sadd
put_on_list: push lpush rpush
take_off_list: pop
older_than: before old
database_slow: slow queries
database_full: size
show_columns: describe columns
see_structure_object: details describe
insert_or_change new_or_change: upsert
is_index_useful would_index_help which_index: suggest hypothetical index
recent_numbers_view precomputed: materialized refresh
what_runs_in_database running_queries: active queries
is_database_healthy database_ok: health analyze
rights_database let_read_table give_read: grant privileges
keep_for_ever_key no_expiry never_expire: persist
kind_of_key: type
add_to_text: append
number_of_fans rank_players: zadd zrange
geo_around: geo search
log_of_events_read: xread xrange
run_lua: eval script
how_big_bucket bucket_big: bucket size
look_in_csv_s3 query_file_bucket: select object
no_public nobody_from_internet block_internet close_to_public: public_access_block
who_may_what_bucket: policy
label_object label_bucket: tags
finish_upload_part: upload part
message_when_upload: event notification
follow_visitors access_recorded: access logging
stored_under: get
what_is_cached cached: get keys
cache_away empty_cache clear_cache: flush flushdb delete
does_key_exist is_there_key: exists
longest_queries heaviest_queries: slow queries
who_uses_database: connections active queries
orders_table customers_table: table query
find_customers_who find_rows: query select
share_file_temporarily temporary_access: presigned url
file_bigger_than: list objects size
protect_from_overwriting: versioning object_lock
"""
