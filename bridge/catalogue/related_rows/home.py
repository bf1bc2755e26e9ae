"""Everyday words about music and homes. See `related.py`."""

ROWS = """
louder quieter softer loudness too_loud too_quiet cant_hear: volume
put_on_music some_music put_on play_something: play start
stop_music silence_music music_off: pause stop
song_after skip_song dont_like_song next_song: next track
song_before again_last_song last_song: previous
what_song which_song this_song whats_playing what_is_this_song what_is_playing: currently_playing current playback
mixed_order random_order mix_up any_order jumble: shuffle
over_and_over_song on_loop loop endless same_song: repeat
from_minute jump_to_minute jump_forward wind_forward rewind: seek
sing_along words_of_song song_words words_to_song text_of_song: lyrics
songs_i_like my_songs liked_songs hearted heart_song: saved tracks library
remember_song like_song keep_song: save track
after_this_song line_up_next play_afterwards play_next: queue
music_in_kitchen on_the_speaker on_speaker loudspeaker speaker speakers other_speaker: device devices transfer playback
list_of_songs mix mixtape party_music song_list: playlist
sounds_like bands_like similar_bands similar_music: related artists recommendations
what_should_i_hear what_to_listen new_music_for: recommendations
new_records fresh_music just_out new_albums: new_releases
record_of_band discs records_by: album albums
hits best_songs biggest_hits well_known_songs: top tracks
heard_yesterday heard_recently heard_before listened_to: recently_played history
what_i_hear_most most_heard hear_most: top items
how_fast_song beats beat bpm danceable key_of_song: audio_features tempo
podcast podcasts radio_show: show episode
read_to_me spoken_book: audiobook
band_i_follow fan_of: follow artist
lamps too_dark make_light make_bright brighter dimmer dim brightness bright: light turn_on brightness
light_colour cosy romantic mood: scene light activate
warm warmer too_cold cold_in freezing heat_up degrees_in degrees_bedroom: temperature thermostat climate heating
degrees_room chilly: temperature thermostat climate heating
colder too_hot cool_down air_conditioning air_conditioner aircon ac: hvac climate temperature cooling fan
shutters shutter blinds blind roller_blind curtains curtain let_down_shutters garage: cover open close position
garage_door awning: cover open close position
lock_door lock_up bolt close_house is_locked front_door: lock
door_open let_into_house open_door: unlock open door
standing_outside at_door at_the_door at_entrance who_is_outside doorbell door_bell: camera snapshot doorbell
in_front_of_house: camera snapshot doorbell
house_camera garden_camera see_garden: camera
burglar burglars intruder thieves leaving_house: alarm arm security
alarm_off home_again im_back: disarm alarm
vacuum hoover clean_floor cleaning_robot dust sweep robot_cleaner: vacuum start clean
mow cut_grass grass: lawn mower
water_plants water_garden sprinkler sprinklers: irrigation valve
is_window_open window_open still_on is_it_on: state get sensor
anybody_home who_is_home is_home nobody_home somebody_home: person presence location
power_used electricity current_used power_bill power_consumption kilowatt: energy consumption usage
evening_mood film_mood movie_night cinema: scene activate
when_i_leave when_comes_home every_evening: automation trigger
say_in_living_room announce_in say_through tell_kids: speak announce tts
tv television telly: media media_player play
humid damp moist mouldy: humidity
things_in_house gadgets appliances washing_machine dishwasher tumble_dryer: device entity state
buy_milk shopping_notes groceries: shopping_list add
fan_faster air_stream: fan speed
best_known well_known famous: top popular
songs_of songs_by: tracks artist
next_record_of: album
tune_hearing hearing_now tune_just what_tune: currently_playing current
lyric: lyrics
other_room_music music_to: transfer playback
song_off_list song_from_list: remove playlist
follow_list: follow playlist
start_song_again song_from_start: seek restart
which_speakers: devices
how_long_song: track
cover_of_list: cover playlist
party_list: playlist
who_sings singer_of: artist track
my_bands: followed artists
delete_song_likes unlike: remove saved
turn_light light_off lights_out dark_room: light turn_off
all_lamps: light turn
red_light blue_light colour_lamp: light color
how_warm_inside room_temperature inside_temperature: state temperature get climate
holiday_heating away_mode eco: preset climate hvac
hot_water boiler: water_heater
socket plug: switch turn
tv_on: media turn_on
house_history when_door_was: history logbook
house_rooms: area
what_devices: devices entities list
restart_home: restart
home_setup setup_of_home home_assistant_setup: backup configuration
kitchen_list: shopping_list
kids_in_bed good_night: scene script
script_home: script run
update_home: update
remote_button: remote send
battery_empty: state sensor
after_this_what play_after what_comes_next_music: queue
song_next: queue next
heating_mode heating_in: climate preset hvac
going_away leaving_home we_leave: away preset arm
windows_closed doors_closed: state get
turn_everything_off everything_off: turn_off all
who_rang: doorbell camera history
set_temperature: thermostat temperature
sound_source input_of_tv: media source
automation_off_house: disable automation
where_is_my_wife where_is_dad where_is_my_phone is_she_home: locate person
send_to_phone_house: notification send
robot_home robot_back back_to_dock charging_dock: vacuum dock return
half_open halfway_down blinds_halfway: cover position
charge_at_home: ev_charging
dry_air humid_air more_moisture: humidity set
house_diary what_happened_house: logbook history
own_mood save_mood: create scene
flip_switch: toggle
track_again: previous
check_if_liked: check saved
remember_album: save albums
podcasts_i_follow: saved shows
profile_music: user profile
playlist_other_order: reorder playlist
describe_list new_name_list: playlist details update
bit_warmer bit_colder: thermostat temperature climate
night_mode nobody_in_house everyone_gone: scene alarm arm away
heat_bathroom heat_room: temperature thermostat
who_came_home came_home: person logbook
wash_floor mop: vacuum
music_quieter music_louder: volume
what_was_that_song song_before_this: recently_played
who_sings song_on_now song_is_on: currently_playing track artist
"""
