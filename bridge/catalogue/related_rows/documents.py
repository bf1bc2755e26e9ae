"""Everyday words about files in the cloud, documents and wikis. See `related.py`."""

ROWS = """
upload_to_cloud put_into_cloud put_cloud in_the_cloud: upload
download_from bring_down_file: download
hand_in collect_files people_send_me files_from_others send_me_files: file_request upload
give_link link_to_file public_link send_link: share link shared url
anybody_with_link anyone_open outsiders_open: share link permission
who_can_open can_open who_has_access who_sees may_read who_can_read: permission permissions access list sharing
who_may_see: permission permissions access list sharing
no_longer_open not_see_any_more stop_sharing take_from_everybody no_longer_see: unshare revoke remove permission
bin rubbish_bin trash_can recycle_bin waste_basket dustbin wastebasket: trash empty restore delete
out_of_bin from_the_bin out_of_trash: restore untrash undelete
space_left room_left how_much_room storage_left gigabytes_left: quota storage space usage
put_in_folder file_away into_folder: move folder
same_file_twice files_twice have_twice: duplicates duplicate
new_place_in: move
picture_of_file small_picture preview_picture: thumbnail preview
find_document where_is_document paper_about: search files
text_of_document what_document_says: read content export
table_document excel_file: spreadsheet sheet
slides slide_show: presentation slides
take_over_document give_document new_owner: transfer ownership owner
packed_together pack packed zipped one_archive: zip archive compress
unpack unpacked unzip: extract unzip archive
shortcut_to point_to: shortcut link symlink
notebook_page new_page write_page: page create
page_below under_page pages_below subpages pages_under: child children page list descendants
page_back page_away page_lost: restore page trash version
page_above above_page pages_above path_to_page: ancestors parent
add_to_page more_text_to_page write_on_page paragraph paragraphs: append block update
picture_on_top banner top_picture cover_picture: cover image
table_of_pages list_with_columns: database create
what_others_wrote remarks opinions feedback_on: comment comments list
point_at_this pages_pointing link_here linking_here who_links: backlinks links
area_for_team place_for_team wiki_area own_area: space teamspace workspace create
allowed_on_page lock_page restrict_page: restriction restrictions permission
pattern_for_pages sample_page same_form_every ready_made: template
like_it liked likes: like
copy_whole_page pages_with_children: copy duplicate
page_as_document: export pdf
fitting_keywords: label tag
cell cells_of range_of_cells: range values sheet
write_cells numbers_into_cells into_cells fill_cells: write update range sheet
add_row_to_sheet line_in_table: append row sheet
google_form form_answers: form responses
new_sheet tab_in_sheet: sheet tab create
word_document word_file google_doc: export document convert
in_word: docx export document
comment_on_document: comment
empty_bin empty_trash: empty trash
who_worked_on_file: activity revisions
file_of_colleague: shared
shared_with_me: shared list
ask_people_for_files collect_from_people: file_request
get_file_from_net save_from_internet into_dropbox internet_into: save_url url
undo_deletion recover_deleted deleted_file deleted_files: restore undelete recover
is_full almost_out_of_room: space quota usage storage
star_file: star
many_lines into_table: rows add insert batch append
tick_list list_with_boxes checklist: todo checkbox
where_written written_about write_about_it: search
sub_page: child page
page_into_archive put_page_archive: archive page
page_somewhere page_elsewhere page_under: move page
who_read_page page_read_by read_this_page: views analytics
who_may_page: restrictions permissions
team_area department_area: space teamspace
page_for_everybody page_public page_on_web: publish
table_view other_view as_board_view gallery: view
column_for_table one_column: property column add
highlight_box: callout block
text_as_markdown plain_text_of: markdown content
mention_in_page: comment
home_page_wiki: space homepage
tasks_in_wiki todo_in_wiki: tasks inline
google_doc google_docs: gdrive drive document file
google_sheet google_sheets: gdrive drive spreadsheet sheet
google_slides google_form: gdrive drive presentation form
doc_comment remark_in remark_on react_to_remark: comment reply
small_version small_image: thumbnail
all_subfolders subfolders: tree
recently_used worked_on_lately opened_lately work_on_lately: recent list
page_history: history versions
team_wiki company_wiki wiki: confluence wiki page space
wiki_page: confluence page
show_as_calendar as_a_calendar as_board as_timeline as_kanban: view create
swap_word_in_document find_replace swap_words: replace text
add_paragraph add_text_document: append doc
who_owns_file give_file_to: transfer ownership
team_drive: shared_drive
fetch_range read_cells numbers_from_sheet what_is_in_cell: read range sheet
empty_cells_sheet: clear range
all_slides new_slide: slide presentation
files_given_to_me others_gave_me: shared received list
folder_as_zip: zip download
stop_link link_not_work_any link_dead link_off: revoke shared_link
password_on_link link_with_password: modify link shared
upload_without_account: upload link
who_in_folder: folder members list
is_copy_finished is_job_finished job_done_yet: job status check
files_deleted_list what_was_deleted: deleted list
little_picture_page emoji_on_page: icon
nobody_edit not_edit protect_page freeze_page: lock page restrictions
columns_choices new_choice: select option
entry_in_table entry_into_table: row add database
tick_task: check todo complete task
save_link_on_page: bookmark
program_text_on_page: code block
half_done_page: draft
compare_versions_page: compare versions
bring_old_page: revert restore version
news_for_company company_news_wiki: blog post
files_on_page: attachments
anyone_who_has_url who_has_link has_url has_the_link whoever_has: share link
everywhere_in_document everywhere_in_doc name_everywhere: replace text
hang_on_page files_hang: attachments list
make_favourite: star
cloud_full cloud_storage: quota storage space
type_into_document write_in_document: append update doc
file_was_overwritten overwritten: revisions restore versions
freelancer_access outsider_access: share permission
throw_page page_to_bin: archive trash delete page
rename_page other_title: update page
folder_for_team: shared_drive folder create
table_of_contents: page tree
list_of_all_pages structure_of_wiki: page tree
send_document_to: share file
find_picture find_photo: search files
cut_page_out: move page
read_aloud_page: content
"""
