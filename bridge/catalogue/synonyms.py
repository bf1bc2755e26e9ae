"""Words that mean the same to people who ask for tools: generic English and the language of computing.

Each line is a group. `_` joins the words of a phrase. A word may be in several groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from bridge.catalogue.words import words_of

# A phrase is the stems of its words. Most have one word.
Phrase = tuple[str, ...]

# What a tool does. The first word of most tools' names, behind the service, is one of these.
_ACTIONS = """
create add new make open insert register generate file raise set_up put build start
delete remove erase drop destroy discard trash purge clear get_rid_of throw_away wipe
list show get find fetch read view search look_up look_for lookup retrieve query see display browse describe what which
list count how_many
update edit change modify set rename adjust patch alter replace rewrite correct amend reschedule postpone
send post tell message notify write publish inform share announce let_know
run start execute exec trigger launch invoke begin kick_off boot
stop end halt abort terminate kill shut_down finish complete
pause suspend hold snooze mute silence
resume continue unpause restart
restart reboot retry rerun redo reload again
cancel abort revoke withdraw call_off void undo
close shut resolve finish complete solve done tick_off conclude end
reopen restore recover undelete bring_back revert undo roll_back rollback
move transfer relocate
copy duplicate clone replicate fork
upload attach import put send load
download export save fetch
save store keep remember
invite add onboard
assign give hand allocate delegate
enable activate turn_on switch_on unlock unblock allow
disable deactivate turn_off switch_off suspend lock block ban
approve accept confirm agree
reject decline deny refuse dismiss
check verify validate test inspect
compare diff difference
reply respond answer comment
combine merge join put_together
leave quit exit
grant allow permit give authorize
revoke deny take_away
kick remove ban throw_out expel
hide mask conceal
schedule plan book arrange create set_up
book reserve reservation booking
calculate compute estimate count how_many
convert transform turn_into
summarize summary overview
subscribe follow watch subscription
unsubscribe unfollow opt_out
suggest recommend suggestion recommendation
skip next
select choose pick
open navigate go_to visit load
click press tap push
type enter input fill
listen play hear
"""

# What a tool does it to.
_THINGS = """
issue ticket bug task defect
ticket case
task todo to_do action_item subtask
repo repository project
pull_request merge_request pr mr
code source script program
comment note remark annotation
picture image photo screenshot img pic
screenshot snapshot capture
folder directory dir
mail email e_mail inbox
meeting event appointment calendar invitation
meeting call video_call conference
message msg chat dm text
channel room chat conversation
conversation thread discussion
user member person people account teammate colleague participant who
employee staff worker hire
customer client contact buyer shopper
contact address_book
company organization organisation business firm
team group
lead prospect
deal opportunity
invoice bill receipt
payment charge transaction
refund money_back reimburse reimbursement
balance credit money funds
price cost fee rate
discount coupon voucher promotion
order purchase buy sale
product item article good
stock inventory
stock share equity
ship shipment shipping deliver delivery fulfillment parcel
document doc page file
spreadsheet sheet workbook excel
row record line entry
column field property
table dataset
database dataset db
query sql
chart plot graph figure diagram
build pipeline workflow job ci
release version deploy deployment rollout
version revision history
history log audit
server instance machine vm virtual_machine host node
kubernetes k8s cluster
secret password credential api_key token
error exception crash failure bug
alert alarm monitor incident outage page notification warning
metric statistic stats number analytics measurement
report summary dashboard statistics
size big large
long length duration
label tag category
attachment file
video movie clip film
song track music tune
artist band singer musician
volume loud quiet sound
caption subtitle transcript
call phone dial ring telephone
sms text txt text_message
vacation holiday time_off out_of_office
board kanban
deadline due_date
address location place coordinates geocode
direction route navigation way
distance far
place restaurant shop near nearby around_here
weather forecast temperature rain
storm hurricane cyclone
light lamp bulb
flight fly plane
hotel accommodation
survey form questionnaire poll
newsletter campaign mailing mailing_list
subscriber audience recipient
permission access right role acl share
link url address
web_page website page site
browser web internet
command shell terminal bash
hook webhook callback
environment env variable
configuration config setting preference
reminder remind remember
status state presence
profile bio about_me
schedule shift rota roster on_call
review feedback rating
recent lately latest last newest
part piece chunk block
"""


def _read_groups(text: str) -> Iterator[tuple[Phrase, ...]]:
    for line in text.split("\n"):
        if line:
            yield tuple(tuple(words_of(phrase)) for phrase in line.split())


def _map_phrases() -> dict[Phrase, tuple[Phrase, ...]]:
    meant: defaultdict[Phrase, dict[Phrase, None]] = defaultdict(dict)
    for group in (*_read_groups(_ACTIONS), *_read_groups(_THINGS)):
        for phrase in group:
            meant[phrase].update(dict.fromkeys(group))
    return {phrase: tuple(other for other in same if other != phrase) for phrase, same in meant.items()}


# The other phrases that mean the same, for each phrase.
SYNONYMS = _map_phrases()
LONGEST_PHRASE = max(map(len, SYNONYMS))
# All words that name an action, such as "creat".
ACTIONS = frozenset(phrase[0] for group in _read_groups(_ACTIONS) for phrase in group if len(phrase) == 1)
# Phrases that may have other words within, as in "let the team know".
SEPARABLE = frozenset(phrase for group in _read_groups(_ACTIONS) for phrase in group if len(phrase) == 2)
# Words that ask without saying for what.
QUESTION_WORDS = frozenset(map(tuple, map(words_of, ("what", "which", "who", "how many"))))
