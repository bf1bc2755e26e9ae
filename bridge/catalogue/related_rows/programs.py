"""Everyday words about browsers, local files, git and Python. See `related.py`."""

ROWS = """
go_to_page visit_page open_page open_website call_up surf: navigate open goto url
page_back_browser back_page: back navigate_back
load_again fresh_page: reload refresh
go_down further_down scroll_down: scroll
press_button push_button hit_button press: click button press_key
write_into_box enter_text into_box type_in search_box: type fill input
pick_from_list dropdown drop_down choose_from choose_entry: select option
tick_box tick checkbox: check
untick: uncheck
pull_over drag_over: drag drop
rest_mouse mouse_over point_mouse: hover
picture_of_page page_picture photo_of_page: screenshot
look_like_on look_phone on_an_iphone on_a_phone on_phone mobile_view small_screen: emulate device viewport resize mobile
tablet_view on_tablet phone_screen: emulate device viewport resize mobile
pretend_to_be as_if simulate: emulate mock fake
pretend_am_in standing_in_other_country other_city: geolocation emulate
without_internet no_connection offline_page: offline emulate
dark_colours dark_look night_colours dark: color_scheme dark theme
slow_line slow_connection bad_connection: throttle network
popup_window are_you_sure ok_box popup message_box: dialog
what_page_loads loaded_files requests_made: network requests
script_messages script_errors: console
run_javascript code_in_page: evaluate
stay_logged logged_in_page small_files_page remembered_login: cookies storage
page_words readable_text only_words words_on_page: text page content
fast_page page_quick page_quality search_engine_fit: lighthouse audit performance
blind disabled_people screen_reader: accessibility
until_appears wait_appears appears shows_up: wait selector
second_window another_window new_window: tab
read_file_on_disk open_file whats_in_file: read file
several_files_read: read_multiple
write_file save_text save_file: write file
change_one_line replace_text_in: edit
which_files files_in whats_in_folder: list directory
folder_picture nested_folders folders_below: tree directory
file_name_change other_file_name rename rename_file: move rename
file_elsewhere: move
look_text_in_files which_file_says word_in_files contains_text contain_word: grep search
files_called file_named: find search glob
when_file_changed file_size about_file: info stat metadata
fingerprint same_content untouched unchanged_file tampered: checksum hash
who_may_read_file file_rights executable runnable: permissions chmod mode
file_belongs root_owner owner_of_file: owner chown
changes_live watch_folder: watch
last_lines_file growing_file: tail
first_lines_file: head
where_i_am_folder: working_directory
compare_files two_files: diff compare
local files_here my_computer my_disk local_file local_files on_my_disk: filesystem file directory
run_program run_python execute_python calculate_with: run execute code script
terminal_command: shell command
install_library missing_library need_library module_missing: install package
remove_library: uninstall package
which_libraries installed: list packages
own_environment clean_environment: virtual environment venv
tests_of_program do_tests_pass check_my_code: test run
find_bug_step step_through: debug
how_fast_is_code which_function_slow how_quick how_long_function time_code: time profile benchmark
style_errors code_style ugly_code: lint format
wrong_types: type check mypy
solve_x unknown_x formula: solve equation
derivative slope rate_of_change: differentiate derivative
area_under: integrate
numbers_table csv_table load_table: dataframe csv load read
empty_cells missing_values holes_in_data gaps_in_data: fill missing
group_by per_group totals_per_group: aggregate group pivot
bring_tables_together tables_together: join merge
typical_values average median mean_value spread: describe statistics mean
depend_on_each hang_together_numbers relation_between: correlation regression
line_through straight_line trend_line: regression fit
guess_future predict what_will_be: forecast predict
groups_in_data: cluster
is_it_chance by_chance coincidence significant: test significance hypothesis
bars bar_chart pie curve_of draw_curve: plot chart
dice random_number lottery: random
prime matrices: math matrix
units miles_to_km feet_to_metres inches pounds_to: convert units
look_text_pattern find_pattern: regex match
forward_page one_page_forward page_forward: forward
back_in_browser: back
close_tab: tab close
which_tabs: tab list
keyboard key_on_keyboard press_enter: press_key
upload_on_page choose_file: upload file
record_page film_page: video record
save_page_pdf page_as_pdf: pdf
html source_of_page: html content source
click_ok press_ok say_ok accept_popup: dialog accept handle
block_ads block_requests: block intercept route
false_answer fake_answer: mock
cookie_banner: cookies
links_on_page: links extract
what_is_on_page page_structure: snapshot
window_size bigger_window: resize
allow_camera allow_location: grant permissions
speed_of_page: performance lighthouse
recycle_bin wastepaper: trash
text_to_file save_text_to write_text: write file
make_executable script_executable run_bit: permissions chmod
link_to_other_file: symlink link
empty_file: create touch write
when_last_opened: info stat
big_files space_hogs fills_disk: large files disk usage
room_on_disk free_disk: disk usage
picture_file_read: media
zip_folder: zip archive
newer_file: metadata
batch_rename: rename
run_snippet snippet_python snippet_of_code: run code
variables_session which_variables: variables list
forget_variables clean_session: reset session clear
help_function docs_of: documentation help docstring
stop_program program_hangs: interrupt stop kill
picture_from_numbers: plot chart
big_calculation sum_numbers: calculate math evaluate
symbolic algebra: math solve
read_excel: excel spreadsheet load
sql_on_table: dataframes sql query
types_of_code: type
unit_tests: test
environment_variables_python: environment
site_remembers site_remember browser_remembers: cookies local_storage storage
download_button: download
click_twice: double_click
right_mouse: right_click
move_with_mouse: drag
wipe_field clear_field empty_field: clear input
fill_whole_form: fill form
find_words_on_page: find page
jump_to_element: scroll
keep_login save_login: storage state save
forget_cookies: clear cookies
pretend_offline: offline
see_picture_file show_image_file: media read
lines_from_to certain_lines: lines read
put_line_in put_lines: insert lines
take_lines_out: delete lines
patch: apply patch
swap_word_everywhere everywhere_in_files in_all_files: replace files
copy_folder: copy directory
where_link_points: read symlink
odd_characters garbled umlauts wrong_characters: encoding convert detect
files_of_today changed_lately changed_today: recent files find
files_not_touched old_files: find old files
cut_file_in_pieces: split file
how_many_lines: count lines
what_is_in_zip: list archive
switch_branch: checkout
stop_merge give_up_merge merge_away: abort merge
stashed_back parked_back unpark shelf_back take_stash: stash pop
list_parked: stash list
parked_away: stash drop
history_of_file past_of_file: file history log
file_at_commit file_as_it_was: show file restore
bring_file_back_git: restore file
what_will_be_committed: diff staged
delete_untracked: clean
name_email_git: config
run_in_background long_running long_calculation: background job
output_of_job: job output
fresh_python: reset session
web_page_into_python: fetch url
table_first_rows: preview dataframe
describe_numbers key_numbers: describe dataframe
save_table: save dataframe
teach_model learn_from_data machine_learning: train model
notebook_run jupyter: notebook run
change_cell: notebook cell
unsafe_packages packages_safe: scan dependencies
find_package is_there_library: search pypi
make_code_pretty: format code
load_in_background loaded_in_background page_load_background: network requests
repo_on_my_computer local_repo locally: git
website webpage: browser page
save_web_page: pdf snapshot
fill_in_login log_into_site: fill form type
what_did_page_say_console: console
tap: click
swipe: scroll drag
phone_size: resize emulate
is_file_there file_there: exists
newest_files: recent files
put_at_end_of_file add_line_to_file: append file
what_did_i_change what_did_i_do: diff status
back_to_last_commit throw_changes discard_changes: restore reset checkout
send_my_commits: push
which_remote: remotes list
try_code test_code: run code tests
average_of_column: describe dataframe
picture_of_numbers: plot chart
"""
