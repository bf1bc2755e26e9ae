"""Everyday words about payments, shops, customers, campaigns, support and phones. See `related.py`."""

ROWS = """
money_back give_money_back pay_back paid_back get_my_money_back: refund reimburse compensation
return_part_of_money part_of_money: refund partial
take_money charge_card collect_money debit: charge payment capture
money_reserved take_reserved reserved_money held_money: capture payment
bank_reverses customer_disputes customer_contests contest_payment says_never_bought complains_bank chargeback: dispute
proof proofs prove: evidence
money_on_our_account money_to_bank money_to_our_bank transfer_to_bank: payout payouts
how_much_money_we_have what_is_in_account money_in_account: balance
money_in_and_out bookings_of_account ins_and_outs: transactions balance
ask_for_money send_bill write_bill billed: invoice create send
bill_as_document: invoice pdf
unpaid owes owe_us owing outstanding not_paid: invoice unpaid overdue list
bill_wrong cancel_bill: void invoice credit
collect_bill_now pay_bill: pay invoice
pays_every_month monthly_payment pay_monthly every_month: subscription create
stop_monthly_payment ends_subscription: cancel subscription
other_tariff cheaper_plan tariff bigger_plan upgrade: subscription update plan change
try_for_free free_month test_month: trial
money_off percent_off cheaper reduction reduced rebate bargain sale_price: discount coupon promotion code
page_to_pay pay_online pay_here_link link_to_pay: payment_link checkout session
card_details cards_of_customer saved_cards: payment_method
customer_changes_card self_service: portal
vat sales_tax tax_rate: tax
fraud cheating suspicious stolen_card: review radar dispute risk
new_article new_thing_in_shop offer_in_shop put_on_sale sell sell_new: product create publish
in_shop_window show_in_shop visible_in_shop: publish product
out_of_shop take_from_shop not_sell hide_from_shop: unpublish product archive
sizes_colours size_and_colour different_sizes: variant
picture_of_product photos_product: product image
shelf themed_group group_of_products: collection
how_many_left still_have left_in_stock in_warehouse warehouse on_shelf: inventory stock levels quantity adjust
nearly_sold_out almost_gone sold_out running_low reorder_soon: low_stock inventory
count_stock stocktaking stock_wrong: inventory set adjust
new_goods goods_came delivery_came delivered_to_us: inventory adjust receive
who_bought what_bought bought purchases sold: order orders list
send_parcel ship_it sent_off put_in_post has_been_sent on_its_way: fulfillment shipment create ship
where_is_parcel parcel parcels package_number follow_parcel: tracking shipment fulfillment
sends_back send_back goods_back want_to_return wants_to_return: return create
paid_cash paid_by_transfer paid_in_cash paid_otherwise cash: mark_paid payment
left_basket basket shopping_cart full_cart left_cart did_not_finish_buying never_paid: abandoned checkout cart
present gift_voucher voucher_as_gift: gift_card
how_shop_do how_did_shop takings turnover earned earnings_of_shop revenue how_much_sold online_shop: sales report
from_old_address old_links old_url: redirect
blog_text news_on_site story_blog: article blog
look_of_shop shop_design: theme
branches_shop our_shops: locations
possible_customer new_contact interested interested_people might_buy might_become: lead contact prospect
has_become_customer turn_into_customer becomes_customer: convert lead
chance chance_of_sale business_chance sale_in_progress possible_sale big_sale: opportunity deal
won_deal closed_deal lost_deal deal_won: opportunity stage deal update close
stage_of_sale how_sales_go sales_stages: pipeline stage
talked_on_phone phoned had_a_call spoke_with: log call activity engagement
who_looks_after responsible_sales takes_customer: owner account change
same_customer_twice double_entries doubled_contacts duplicates_of_contact: merge duplicate
firm firms business: account company
record_type what_fields_has which_fields: describe object fields
any_text_everywhere: search_all
numbers_of_sales sales_figures sales_numbers: report dashboard run
many_records_import thousands_of_records: bulk
give_record_away for_signature: approval submit
letter_to_all_customers mass_mail mail_to_all_customers: campaign email marketing send
list_of_people_to_mail: segment list audience
took_part_campaign campaign_success how_campaign how_did_the_mailing: campaign statistics analytics report members
fill_in_on_website filled_in_form signup_page: form submission
page_for_campaign ad_page: landing_page
tweet tweets facebook_post social: social post
forget_customer erase_person erase_data_of right_to_be_forgotten data_protection privacy: gdpr delete permanently redact
help_request support_request complaint complaints complain complains somebody_needs_help: ticket case create
requests_waiting waiting_customers open_requests: ticket list search
what_customer_wrote conversation_with_customer: comments ticket conversation
note_only_for_us customer_cannot_see note_customer_not_see for_colleagues_only: internal_note private note
answer_customer reply_customer write_customer: reply comment ticket public
ticket_done problem_of_customer_solved: solve ticket close
ready_answer standard_answer canned prepared_answer: macro
angry_customer happy happy_customers satisfied unhappy content_customers: satisfaction rating csat survey
promised_time answer_in_time too_slow_answer: sla policy
help_page help_text faq instructions_for_customers: article help_center guide
junk_ticket advertising_ticket: spam
who_sent_request person_asking: requester user
tickets_of_problem same_cause: problem incident link merge
automatic_step when_ticket_comes: trigger automation
list_of_tickets_saved: view
phone_somebody ring ring_up give_ring phone_customer ring_customer telephone: call make
machine_tell machine_says machine_speak voice_tell voice_says read_out read_aloud spoken: call say speak text_to_speech
text_somebody write_sms short_message text_message send_text: sms send message
picture_message photo_by_phone: mms
whats_app: whatsapp
who_called who_has_called calls_today calls_of: calls list
recorded_calls recording_of listen_to_call what_was_said_call: recording recordings
call_in_writing written_call written_down_call: transcript transcription
conference_call several_people_phone all_on_phone: conference participant
waits_on_hold on_hold waiting_callers callers callers_waiting: queue members
new_number own_number get_number a_number_in: phone_number buy search available
number_away give_number_back number_back: release phone_number
is_number_real whose_number number_belongs number_valid which_network: lookup phone_number
code_by_sms confirm_phone prove_phone prove_who login_code code_to_phone six_digit: verification verify check
right_code code_correct entered_code: check verification
what_did_sms_cost phone_bill phone_costs spent_on: usage cost
what_happens_when_somebody_calls when_somebody_calls answer_calls: configure phone_number flow voice
not_arrived did_it_arrive message_arrived did_arrive has_arrived: message status delivery get
switch_caller caller_through caller_to: update redirect transfer call
faxes: fax
chargeback chargebacks: dispute disputes
bank_that_customer show_the_bank did_get_goods show_bank: evidence dispute
series_of_mails row_of_mails chain_of_mails sales_mails: sequence enroll
into_list_of: list add
made_error_invoice undo_invoice invoice_error: void
end_of_month_stop end_of_paid_month: cancel subscription
let_subscription_run subscription_again go_on_subscription: resume subscription
pause_payments break_from_paying: pause subscription
prices_of_products price_list: prices list
without_code without_any_code: automatic discount
money_code code_for_money: promotion_code coupon
first_payment: checkout payment
pay_by_instalments: instalments
give_customer_credit: credit balance
customer_data data_of_customer: customer retrieve update
event_from_stripe: webhook event
tax_number: tax_id
pays_for_seats: quantity subscription
failed_card card_failed declined_card failed_payment: failed payment charge retry
orders_today new_orders: orders list
order_arrived where_is_order: order get tracking fulfillment
change_order: update order
order_off cancel_order: cancel order
exchange_product: return exchange
pay_later_order: draft order
order_by_phone phone_order: draft order
shop_numbers: report sales
more_pieces: variant quantity
raise_price change_price cheaper_product new_price: update price variant
customer_regular regular_customers best_customers: customers top orders segment
collection_by_rule automatic_collection: smart_collection
page_in_shop about_us_page: page create
shop_email_list: customers
csv_load bulk_load: bulk import job
won lost: stage closed
new_firm: create account company
employee_of_customer person_at_firm: contact
search_crm look_through_crm: search
sales_team: owner users
who_changed_deal: history
my_deals open_deals: opportunities deals list
next_step_deal: task stage
notes_on_customer: note
log_mail: log email activity
password_forgotten forgot_password forgotten_password lost_password new_password: reset password
approval_steps: approval process
chat_in_crm: chatter
run_report: report run
field_for_records: custom field
soql: query
filters_of_contacts contacts_from list_of_contacts: list search segment
property_of_contact: property
meeting_link book_meeting_customer: meeting
all_data_deleted data_deleted wants_data_deleted delete_all_about: gdpr delete permanently
email_results opened_mails open_rate: email statistics analytics
call_notes: log call
quote_for_customer offer_for_customer price_offer: quote
products_on_deal: line_items
support_team agents: agents users group
urgent_ticket: priority update
block_customer customer_from_writing: suspend user
ticket_to_colleague: assign ticket
merge_requests_same_customer two_tickets: merge tickets
tickets_from_customer tickets_of_user: user tickets list
copy_boss: cc
how_long_customers_wait waiting_times: metrics sla
holiday_hours: business_hours schedule
help_center_search: search articles
bad_words_in_ticket credit_card_in_ticket number_out_of_ticket: redact
company_of_user: organization
rating_by_customer: satisfaction
passcode passcodes one_time_code otp two_factor: verification
hang_up_phone end_phone_call: hang_up end call
text_to_number text_to: sms send
text_later: schedule sms
stop_scheduled_text: cancel scheduled
call_menu press_one: flow ivr studio
video_room video_chat: video room
machine_or_human: lookup answering
block_number: block
number_to_other_text: configure
serverless: function deploy
money_left_twilio: balance usage
delete_recording: recording delete
who_is_in_conference: participants
mute_speaker: mute participant
listen_live: stream
send_picture_phone: mms media
order_goes parcel_goes where_order_goes goes_to_other_address: update order shipping address
buyer_moved customer_moved: update order address customer
ordered_by_phone: create order draft
customer_helped is_helped: solve resolve close
what_do_we_sell our_products our_goods articles_we_have: products list
how_well_sells sells_best best_selling bestseller: report sales top
customers_who_buy: segment customers
send_bill_again: resend invoice send
who_has_not_paid have_not_paid: invoices list overdue unpaid
when_do_we_get_money: payouts list
which_subscriptions who_subscribes: subscriptions list
half_price: discount coupon
free_delivery: shipping discount
stop_discount end_sale: deactivate discount expire
add_firm: company create account
link_contact_firm belongs_to_firm: associate association
which_deals: deals list
big_customers: accounts list
customer_wrote: ticket comments
tickets_in_one_go fifty_tickets: bulk update tickets
which_numbers our_numbers: phone_numbers list
what_was_answered: responses answers
failed_messages not_delivered: message status error
sms_received messages_received: list messages
prepare_payment: payment_intent create
payment_not_wanted stop_payment: cancel payment
who_paid payments_today: charges payments list
close_checkout: expire checkout
bill_ready_make_final final_bill: finalize invoice
extra_line_on_bill position_on_bill: invoice item
ways_to_pay how_customer_pays: payment methods
remove_card forget_card card_away: detach payment_method
accept_dispute lose_dispute: close dispute
pay_out_now: create payout
pay_by_use usage_based: meter usage record
sellers_on_platform marketplace: connected account
sizes_away: delete variant
order_complete order_finished: close order
order_was_paid: mark paid
offer_to_customer_shop: draft order invoice
on_its_way_number: tracking update
goods_by_rule: smart collection
customer_ideas: ticket
forecast_sales sales_expected will_sell expected_sales: pipeline forecast
interesting_people: leads contacts
product_on_opportunity: opportunity product
who_decides_at_customer: contact role
complaint_done: close case
past_contacts_with_customer everything_with_customer: activity history engagements
rights_to_user_crm: permission set assign
file_to_record: attach file
own_kind_of_record: custom object
start_process_crm: flow workflow run
run_apex_code: apex
bring_record_back: undelete record
together_contact_company: association create
no_more_ads_for: unsubscribe contact
visitors_of_site site_visitors: web analytics
post_on_linkedin post_on_instagram: social post schedule
automatic_process_contact: enroll workflow
article_blog: blog post publish
history_of_ticket who_did_ticket: audits
who_also_gets cc_colleague keep_colleague_informed: follower add
use_standard_answer: apply macro
when_time_passes after_days_without: automation
main_problem_ticket: problem incident link
help_text_change: update article
customers_firm_tickets: organization tickets
live_chats: chats
delete_from_message blank_message: redact message
template_for_sms: content template
sender_pool: messaging service
start_recording record_this_call record_call: start recording
silence_caller: mute participant
end_group_call: end conference
start_phone_menu: studio flow execute
phone_provider_errors: alerts
never_text_again do_not_text no_sms_any: opt_out
warn_when_costs costs_too_high: usage trigger
does_not_work_for no_longer_works left_company left_the_firm: association remove update contact
met_client met_customer we_met: log meeting
crm: hubspot salesforce
customer_database: crm hubspot salesforce
shop: shopify store
newsletter_tool: marketing email
customer_wants_back: refund return
pays_too_late pay_late: overdue invoice
how_many_subscribers: subscriptions list members
put_price_down lower_price: update price variant
new_customer: create customer contact account
send_to_customer: email send
who_spends_most: customers report
customer_angry: ticket satisfaction
escalate_ticket: priority assign
reward_customer: coupon gift_card discount
"""
