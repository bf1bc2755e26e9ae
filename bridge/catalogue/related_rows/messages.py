"""Everyday words about chats, mails and calendars. See `related.py`."""

ROWS = """
write_in_chat say_in tell_channel tell_team tell_group tell_colleagues: post send message channel
private_message whisper only_her only_him: direct_message dm ephemeral
answer_below below_message under_message: reply thread
take_message_back message_wrong: delete edit update message
conversation_room chat_room group_chat: channel create conversation
who_is_in people_in who_belongs: member members list
bring_into bring_in come_in_to add_to_group let_join: invite add member
leave_group go_out_of: leave
heading headings sections_of_channels: category section
be_silent quiet_time peace_and_quiet no_pings no_noise stop_beeping beeping beep: dnd snooze mute silence notification
at_lunch lunch_break having_lunch away_from_desk afk: status presence set
is_online who_is_there who_is_around around_now: presence status online
what_was_said said_about who_said talked_about discussed: search messages history
picture_in_chat send_picture: upload file media
talk_together talk_live voice_room: voice huddle call meeting
slow_down_chat too_many_messages flood_of_messages: slowmode rate limit
bad_words swearing swear swearwords insults: automod rule filter moderation
naughty troublemaker troll trolls spammer: ban kick timeout
let_back_in forgive pardon: unban unblock restore
quiet_somebody cool_off silence_member: timeout mute
rank_of_member power_for_member powers: role permission assign
remind_me dont_forget do_not_forget not_forget forget: reminder remind flag task create
reminder_later later_today nudge: reminder schedule snooze
write_ahead send_later go_out_later go_out_tomorrow tomorrow_morning goes_out deliver_later: schedule scheduled send
write_mail letter write_letter electronic_letter: mail email send compose draft
letters: mail messages list
answer_mail write_back reply_mail: reply
answer_everybody answer_all everybody_on_mail: reply_all
pass_mail_on send_on pass_along: forward
all_mails_automatically_to other_address mails_to_other: forwarding forward rule
unwanted_mail junk_mail rubbish ads_mail advertising: spam junk unsubscribe
not_spam wrongly_spam in_spam_folder: spam junk unspam
newsletter newsletters: unsubscribe campaign
keep_mail_for_later prepare_mail not_send_yet begin_mail: draft create
put_mail_away out_of_inbox: archive move
sort_mail sorted_automatically mails_into: filter rule label folder move
signature_below sign_mails closing_lines closing_words under_my_mails: signature
on_holiday am_away i_am_away gone_until away_until on_leave: vacation out_of_office responder automatic_replies
away_message absence absent away: vacation out_of_office responder automatic_replies
holiday_message auto_reply automatic_answer answer_automatically: vacation responder automatic_replies
enclosed enclosure file_in_mail came_with_mail: attachment
whole_conversation mails_belonging to_and_fro: thread conversation
follow_up deal_with_later do_later flag_mail: flag star follow snooze task
who_writes blocked_sender block_sender hear_from: block sender filter
call_back_mail unsend: recall undo
deputy secretary assistant_read on_my_behalf represent: delegate
send_as other_identity: alias send_as
when_free is_free have_time got_time gap_in free_slot: free_busy availability find_meeting slot suggest freebusy
find_time suits_everybody everyone_can all_can common_time: free_busy availability find_meeting slot suggest freebusy
put_in_calendar diary put_in_diary in_my_diary write_in_calendar: event create calendar add
what_do_i_have_today my_day my_week planned_today planned_for: list events agenda calendar today
agenda: event list
move_appointment put_meeting shift_meeting push_meeting meeting_to: update reschedule move event
cancel_meeting call_meeting_off meeting_off meeting_not: cancel delete event
coming_to_meeting who_comes who_is_coming who_accepted guest guests: attendee attendees invite response
ask_along invite_to_meeting join_meeting join_us: invite attendee add
i_will_come i_will_not_come cannot_come cant_come cant_make_it yes_to_meeting no_to_meeting: respond accept decline rsvp
maybe_come perhaps not_sure_whether: tentatively tentative maybe
take_part taking_part: join attend attendee accept
meeting_place where_meet free_room meeting_room conference_room: room book find resource
video_link video_meeting link_for_call online_meeting: meet conference link online
work_without_disturbance concentrate concentration work_quietly without_interruption uninterrupted: focus_time block
can_work: focus_time block
working_from_home work_from_home home_office where_i_work: working_location
office_hours when_i_work my_hours: working_hours
wife_see husband_see see_my_calendar look_at_my_calendar see_calendar open_my_calendar: share calendar
colleague_calendar calendar_of_others her_calendar his_calendar: subscribe free_busy calendar
pop_up warn_before minutes_before beforehand warn_me_before: reminder reminders
quickly_enter in_one_sentence in_plain_words: quick_add quick
birthday anniversary: event calendar recurring
time_zone which_time clock_time what_time_is: timezone time convert
person_details phone_of number_of_colleague card_of: contact people
unread_letters mails_not_read: unread messages list search
mail_with: search messages email
mails_from mails_with mails_about: search emails messages
electronic_mail: email
addressee recipients_hidden: bcc
is_in_inbox new_mail any_mail got_mail mail_today: list messages inbox search unread
colour_mails mail_sticker mail_category: label category
which_addresses sender_addresses send_from: alias send_as
put_mail_into mail_into_folder mail_into put_message_into: move message
pass_mail mail_on_to on_to_my: forward
shut_inbox tidy_inbox clear_inbox: archive batch
delegate_mailbox: delegate
mail_folder_new drawer: folder
mails_as_read all_as_read everything_as_read many_mails mails_at_once: batch modify mark_read
someone_wrote_to_me personal_message: dm direct_message
to_everybody_in mention_all: channel post announcement broadcast
chat_history: messages history read
take_back_archived archived_back bring_archived channel_again: unarchive
quiet_channel: mute
subject_of_channel what_channel_is_about: topic purpose
bring_to_top_of_channel important_message: pin
file_to_channel put_file_chat: upload file
group_handle team_handle mention_group: user_group usergroup
who_reacted: reactions
saved_for_later_message: bookmark
own_smiley own_emoji new_emoji: custom emoji upload
put_user_role make_moderator make_admin: role assign
throw_out_of_server off_the_server: kick ban
stop_writing from_writing not_write keep_from_writing must_be_silent: timeout mute suspend
invitation_link link_to_join: invite
voice_channel_out: disconnect voice
show_of_hands: poll
one_more_calendar separate_calendar own_calendar another_calendar: create_calendar
public_holidays bank_holidays school_holidays football_fixtures: subscribe calendar holidays
dentist doctor haircut lunch_with dinner_with coffee_with: event create calendar
every_tuesday_meeting standing_meeting regular_meeting: recurring event
decline_meetings not_bookable block_days block_time: out_of_office focus_time block
colour_of_event event_colour: color
is_anybody_free is_she_free is_he_free are_they_free everybody_free: freebusy availability free_busy
who_got_invited who_is_invited: attendees
swap_organiser other_host: organizer
let_others_book book_time_with_me: appointment_schedule
next_meeting next_appointment: list events next update
import_calendar_file: import ics
microsoft_todo microsoft_365 office_365 exchange: outlook
fetch_mail_back mail_back email_back gmail_back: untrash restore undelete
calendar_entry entry_calendar: event
secret_meeting private_meeting: visibility event
meeting_again_every: recurring
not_disturb_calendar: focus_time
paper_form: form
rules_for_mail mail_rules: filter rule
automatically_mails mails_automatically bank_mails: filter rule create
mail_never_again: block unsubscribe filter
shared_mailbox: delegate
mail_to_list: group
thank_somebody: reaction message
emoticons: emoji
where_did_we_talk: search messages
call_in_chat: huddle call
link_to_message message_link: permalink link
channel_done channel_not_needed: archive delete channel
tell_person_in_chat write_person message_person: direct_message dm send
message_later_away not_send_after_all: delete scheduled cancel
what_room_for describe_channel: purpose topic
email_to_chat_user account_belongs who_has_email belongs_to_email: find user email lookup
say_in_meeting_status show_busy busy_sign: status presence set
who_is_bot_on: servers
nickname call_member_name: nickname
who_is_banned banned_people: bans list
bulk_messages_away delete_many_messages clear_chat: bulk delete messages
meet_in_server party_on_server: scheduled event
what_did_admins_do: audit log
picture_collage whiteboard: canvas
start_mail begin_letter: draft
finish_draft draft_out: send draft
unread_only: unread list
whole_thread_quiet thread_quiet: mute thread
important_mail mail_matters: important star flag
mail_is_fraud phishing: spam report
no_mail_from_him never_hear_from dont_want_mail_from: block sender
end_holiday_message back_from_holiday i_am_back: disable vacation automatic_replies
who_reads_my_mail let_read_my_mail read_my_mail: delegate
mail_of_team info_mailbox: shared mailbox
phone_book address_book: contacts
new_person_in_address: create contact
shopping_chores errands: tasks task_list
change_one_of_series only_this_time just_this_once this_once: instance event update cancel
take_guest_off take_off_invitation uninvite: remove attendee
add_video_to_meeting: meet link add
busy_times_of: free_busy schedule
clear_whole_calendar: clear calendar
stop_showing_calendar hide_calendar: unsubscribe calendar
week_look_like how_is_my_week: week overview
what_is_first_today: agenda next_event
calendar_to_file calendar_file: export ics
only_moderators_write only_admins_write may_write_in: permissions channel
write_for_one one_person_sees just_one_person: ephemeral direct
chat_with_one talk_privately slide_into: direct_message dm
ring_round broadcast_message: send announcement
no_calls_please leave_me_in_peace need_peace need_quiet: do_not_disturb dnd focus_time
meetings_this_week busy_this_week free_this_week: overview agenda events free_busy
first_meeting first_appointment: next_event agenda
double_booked overlapping: free_busy conflict
ask_when_free doodle: suggest meeting_time find
shared_diary family_calendar team_calendar: calendar create share
mails_unanswered whom_must_i_answer: unread search
mail_disappeared mail_is_gone: search trash untrash
bulk_clean_inbox inbox_full too_many_mails: batch archive delete unsubscribe filter
put_stamp send_letter: send email
sent_by_mistake sent_too_early: delete undo cancel
invite_outsider guest_in_chat: invite guest
what_did_i_miss missed catch_me_up: history unread messages summary
sit_down sit_together room_for_people place_to_meet: meeting rooms room
"""
