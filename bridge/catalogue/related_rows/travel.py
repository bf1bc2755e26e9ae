"""Everyday words about travel, money and markets. See `related.py`."""

ROWS = """
book_plane plane_ticket fly_to airline_ticket plane flight flights: flight search book
cheapest_day when_cheapest cheap_to_fly cheapest_time: cheapest dates fare
anywhere_cheap somewhere_warm go_anywhere: anywhere explore
stop_over several_cities: multi_city
plane_late flight_late delayed late_plane hours_late missed_connection: flight status delay compensation claim
is_plane_on_time on_time landed_yet plane_landed has_landed: flight status arrivals
which_seat sit_window by_window seats_free free_seats sit_together: seat_map seat select
suitcase suitcases luggage bags bag take_on_board hand_luggage: baggage allowance
lost_suitcase suitcase_lost bag_lost luggage_gone: baggage lost
boarding_card boarding_pass: check_in boarding
register_flight: check_in
price_falls cheap_flights gets_cheaper price_drops fare_falls becomes_cheaper: fare_alert price alert
bed_for_night stay_night stay_overnight place_to_sleep sleep_somewhere overnight: hotel search booking
somewhere_to_sleep lodgings: hotel search booking
room_in_hotel room_for_two double_room: hotel book room
other_guests_say guests_say: hotel reviews
flat_for_holiday holiday_flat apartment holiday_house: vacation_rental rental
hire_car borrow_car rent_car car_for_week: car_rental rental
boat ship_to crossing ferry_boat: ferry ferries
sea_voyage ship_holiday: cruise
by_rail railway train_ticket: train
coach: bus
what_to_see sights things_to_do tour guided guided_tour museum what_to_do: activity activities attractions
allowed_to_enter need_visa enter_country papers_needed passport entry_papers: visa requirements
jabs injections vaccinations shots: vaccination health
is_it_safe_there dangerous_country safe_to_travel: travel_advisory advice
miles_account collected_miles frequent_flyer bonus_points: loyalty points
whole_trip plan_trip my_journey journey travel_plan: itinerary trip
insure insurance: insurance
pick_me_up from_airport_to_hotel: airport_transfer transfer ride
code_of_airport airport_letters: airport search
plane_footprint bad_for_climate: carbon emissions
cancel_flight not_fly cannot_travel: cancel booking
other_day_flight rebook: change flight booking
share_price share_worth price_of_share shares_worth what_share stock_price shares_cost: stock quote
shares: stock
share_prices_past how_has_share how_did_share: price_history
pays_owners pay_out_owners payout_to_shareholders pay_out_shareholders pays_shareholders: dividends dividend
pay_its_owners pay_owners: dividends dividend
profit profits made_profit earns how_much_earn how_much_does_earn: earnings income statement
owes_owns debts debt: balance_sheet
money_flow: cash_flow
went_up_most climbed_most rose_most biggest_winners winners: gainers
fell_most lost_most: losers
most_traded most_active_shares traded_most: most_active
going_public goes_public new_on_exchange first_day_exchange: ipo
bosses_buy bosses_sell managers_sell managers_buy directors_sell: insider trades
who_owns_shares big_owners biggest_owners shareholders: holders institutional ownership
what_experts_think experts_say experts analysts should_i_buy: analyst ratings recommendations price_target
when_results results_day next_results quarterly_results: earnings calendar
official_papers official_reports sec_papers: filings
what_papers_say newspaper newspapers in_the_news press_says: news
bitcoin ether digital_coins virtual_money digital_money: crypto coin
dollars_in_euros euros_in_dollars change_money how_many_dollars how_many_euros: currency convert exchange_rate forex
exchange_money pounds_in: currency convert exchange_rate forex
gold silver oil wheat raw_material raw_materials: commodity
inflation prices_rising cost_of_living dearer everything_dearer jobless unemployment gdp: economic indicator inflation
economy: economic indicator inflation
central_bank interest: interest rate
state_bonds government_loans loan_to_state: bond yields treasury
is_market_open exchange_open exchange_closed when_does_exchange_open: market hours status
my_shares my_stocks what_i_own: portfolio positions
shares_i_watch keep_watching_share: watchlist
tell_me_when_share share_reaches price_reaches: price_alert
basket_of_shares index_fund fund: etf holdings
which_branch_does_well branches_of_economy industries: sector performance
right_to_buy bets_on: options chain
average_of_last_days charts_signal: technical indicator
yen dollars euros pounds francs kronor rupees: currency convert exchange
in_euros into_euros in_dollars into_dollars many_dollars many_euros many_pounds many_yen: currency convert
index_members companies_in_index which_companies_in in_the_index: index constituents
crypto_now_popular: trending coins
stock_screen find_stocks stocks_with: screen stocks
value_of_crypto coin_price: crypto price
mood_of_market fear greed: fear_greed index
course_of_share: price_history
shares_of_fund: holdings etf
loan_rate: interest rate
dividend_day: dividends
compare_companies rivals competitors: peers compare
key_figures ratio ratios: key_ratios
split_of_share: splits
company_about what_company_does: company profile
before_market: premarket
paper_money: portfolio
decentralised: defi
sell_signal: technical indicator
hotel_for night_at reserve_room room_at nights_at: book hotel
free_rooms: hotel availability search
hotel_photos: hotel details
hotel_off: cancel hotel
flight_price: fare price
which_airline: airline
delay_of_train: train status
train_seats: train
trip_in_calendar: itinerary
my_bookings what_have_i_booked: bookings list trips
change_name_ticket: change booking
extra_suitcase: add baggage
vegetarian_meal meal: special meal
lounge: lounge
taxi cab: ride taxi transfer
currency_travel: convert currency
arrivals_board who_lands: arrivals
departures_board: departures
weather_at_destination: forecast
country_rules: requirements
emergency embassy: emergency
nearest_airport: airports search
upgrade_seat: upgrade
restaurant_table table_for: reserve restaurant book
day_later day_earlier fly_later fly_earlier flight_later: change booking reschedule
which_day_cheapest cheapest_to_fly day_cheapest: cheapest dates
what_do_i_pay_for_fuel: fuel toll
when_train_arrives: arrivals train
company_news: news
how_rich market_value: market_cap quote profile
stock_today: quote
past_prices: price_history
which_stocks_rise: gainers
money_worth: convert currency
two_towns_one_trip: multi_city
offer_of_flight: flight offer
is_airport_late airport_chaos: airport delays
airline_about: airline info
follow_plane: track flight
buy_train: book train
buy_flight: book flight
car_booked: book rental_car
eat_at_destination: restaurants
what_vaccines vaccine: vaccination
add_to_journey: add trip
new_trip: create trip
how_many_miles_i: loyalty balance
symbol_of_company ticker: search symbols
beat_expectations better_than_expected: earnings surprises
what_boss_said_results: earnings transcript
bet_against betting_against: short_interest
when_figures_published figures_out: economic calendar
fees_on_ethereum: gas price
coins_in_wallet: wallet balance
is_token_scam scam: token security
buy_shares sell_shares buy_stock: place order
taxes_company assets_and_debts: balance_sheet
how_much_company_earn: income statement
watch_share: watchlist add
week_on_ship on_a_ship ship_in ocean_liner: cruise
who_owns big_funds funds_own own_shares: institutional holders
flight_now plane_now where_is_plane: track flight
get_there_by_plane: search flights
last_minute: search flights hotels
where_to_stay: hotels search
visa_free: visa
how_is_stock_doing how_is_share: stock quote
what_pays_dividend: dividends
richest_companies: screen stocks
euro_worth dollar_worth: exchange_rate convert currency
is_bitcoin_rising bitcoin_price: crypto price
"""
