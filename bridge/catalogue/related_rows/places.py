"""Everyday words about maps and the weather. See `related.py`."""

ROWS = """
where_address_is coordinates_of which_coordinates gps gps_position gps_values: geocode coordinates location
what_address_is_here address_of_point what_is_at: reverse_geocode
address_correct address_exists address_right: validate address
how_get_to get_to_airport way_to drive_to on_foot walk_to cycle_to get_from get_home: directions route
bus_or_train by_bus by_train by_tram underground tube metro tram public_transport: transit directions
when_bus_leaves next_bus bus_goes next_train next_tram: departures transit
traffic_jam jam jams stuck_in_traffic congestion roads_blocked: traffic
avoid_roads closed_roads road_works roadworks: traffic incidents avoid
best_order_stops several_stops all_customers_one_tour shortest_tour delivery_tour: optimize route waypoints
reach_in_minutes reach_within how_far_can_i_get within_minutes area_reachable: isochrone
leave_car put_car park_car: parking
charge_car electric_car charging_point charge_battery plug_in_car: ev charging stations
fill_up petrol petrol_station diesel filling_station: gas fuel
eat_out somewhere_to_eat place_to_eat hungry eat_dinner have_dinner lunch_place: restaurant places nearby
coffee pub bar drink_beer have_a_drink cafe chemist cash_machine toilet: nearby places search
is_it_open opening_times when_open open_on_sunday close_at: opening hours place details
what_do_people_say is_it_good_place well_rated: reviews place
photo_of_place what_place_looks: photos street_view
picture_from_street see_street: street_view
height above_sea hilly how_high steep: elevation
walk_in_mountains walk_in_hills hike hikes walking_tour: hiking trail
bike bicycle by_bike: bike cycling
motorway_charges road_charges pay_road: toll
going_to_rain umbrella need_umbrella get_wet wet_today stay_dry raincoat rain_soon: precipitation rain forecast weather
in_next_hour next_minutes in_ten_minutes: minute precipitation
what_to_wear need_coat need_jacket how_warm how_cold outside_temperature: current_weather temperature forecast weather
tomorrow_weather next_days coming_days rest_of_week this_week: daily forecast weather
saturday_sunday at_the_weekend weekend: weekend
smog smoggy stink dirty_air bad_air fine_dust haze pollution polluted breathe breathing healthy_to_breathe: air_quality
hay_fever allergy allergic sneeze sneezing hayfever: pollen
sunburn sun_cream burn_skin sun_protection sunscreen strong_sun get_burnt: uv
get_dark gets_dark get_light sun_goes_down sun_go_down sun_comes_up dawn dusk nightfall: sunrise sunset
good_light_photo light_for_photos photo_light: golden_hour
full_moon new_moon: moon phase
northern_lights polar_lights: aurora
windy gale gales breeze blowy fly_kite kite sailing sail: wind marine
high_water low_water ebb: tide
waves surf_conditions surfing rough_sea sea_rough swell boating: marine
swim swimming warm_sea warm_lake bathe sea_warm lake: water_temperature
ski skiing enough_snow slopes snowboard sledging: snow report
snow_slide slides_of_snow: avalanche
summit peak climb mountain_top: mountain forecast
hurricane hurricanes typhoon whirlwind: tropical storm
forest_fire forest_fires bush_fire camp_fire campfire barbecue: wildfire danger
burst_banks banks_river overflow river_high under_water high_river cellar_full: flood
too_dry no_rain_for dried_out lack_of_rain dry_spell: drought
soil_wet garden_dry earth_dry dry_field dry_ground: soil_moisture
plant_out freeze_tonight frozen_plants last_cold_night tomatoes night_frost: frost
flash flashes thunder thunderstorm thunderstorms: lightning strikes storm
bad_weather_coming dangerous_weather warnings weather_warning: severe alerts
rain_picture where_raining rain_map rain_clouds: radar
clouds_from_space from_space: satellite
solar_panels sun_power solar_power sun_energy: solar radiation
hottest coldest hottest_day record_heat ever_measured: record extremes
warmer_than_usual usual_for normal_for typical_for normally usual_weather: climate normals
warmer_than_last colder_than_last than_last_year: compare last_year
weather_then weather_on_that weather_back weather_was: historical weather
weather_on_the_way on_the_drive along_the_way: route weather
for_pilots pilot pilots airfield: metar taf aviation winds_aloft
which_forecast_right forecasts_agree: model comparison
heating_bill heating_costs: heating_degree_days
another_way_to other_way_to other_ways another_road second_way other_road: alternative routes
crowded_place gym_crowded: popular_times
leave_car_downtown my_car_downtown: parking
restaurant_later keep_place: save place
how_steep: elevation
lots_of_addresses many_addresses: batch geocode
addresses_of_all: batch geocode
suggest_address typing_address: autocomplete
meet_in_middle halfway: midpoint
map_picture picture_of_map: static map
postcode zip_code: postcode postal
which_country_is: reverse_geocode country
border border_of_town: boundaries
convert_position: convert coordinates
distances_many: distance_matrix
near_me around_the_corner: nearby
truck lorry: truck route
snap_gps: snap roads
speed_allowed: speed_limits
drive_time driving_time: directions matrix
watering need_watering fields_need fields_dry: soil_moisture irrigation drought
air_be_bad air_tomorrow bad_air_tomorrow: air_quality forecast
how_strong_sun sun_strong strong_is_sun: uv
high_waves high_are_waves: marine
warm_enough_swim enough_for_swim: water_temperature
rivers river: flood
lightnings: lightning
how_much_snow snow_on: snow
which_month_rains: climate
sunny_where where_warmer warmer_place which_town_warmer: compare locations
get_frost: frost
weather_text_when tell_when_cold tell_me_weather tell_when_rains: threshold alert subscribe
wind_high_up: winds_aloft
weather_stations: stations
mosquitoes grow_crops harvest crops: growing_degree
mountain_weather: mountain
visibility fog foggy: current_weather
feels_like: current_weather
storm_go where_storm: storm_track
moon: moon
tide: tide
beach beach_weather: water_temperature uv marine
in_beach on_the_beach: vacation
pharmacy bakery supermarket bank_near atm school_near: nearby places search
take_dog: pet
weather_there: forecast
cold_tonight tonight_cold: hourly forecast
how_hot how_hot_is: current_weather temperature
rain_tomorrow tomorrow_rain: daily forecast precipitation
will_it_snow: snow forecast
sunshine sunny: forecast
along_my_way on_my_way along_route stop_on_way: search along_route
photos_of_restaurant: place photos
send_my_position where_i_am_send: share location
map_from_above picture_from_above bird_view: satellite image
how_big_area size_of_land field_size: measure area
line_of_sight air_line as_the_crow: measure distance
bikes_to_rent borrow_bike rent_bike hire_bike: bike_sharing
train_disruption trains_disrupted trains_cancelled strike: transit alerts
where_is_stop nearest_stop bus_stop: transit stops
gps_route_file route_to_navigation gpx: export route
cheap_petrol fuel_cheap: fuel prices
which_state_capital country_about: country info
where_i_want_to_go my_places: saved places list
compare_towns which_city_warmer: compare locations
frost_in_garden: frost
plants_lose_water: evapotranspiration
sun_for_roof: solar radiation
river_level: flood levels
storm_path hurricane_path: storm_track
breeze_to_sail enough_wind: wind
what_time_there time_there local_time: timezone
ice_on_road slippery: frost temperature hourly
dry_laundry hang_laundry washing_outside: precipitation hourly forecast
bbq_weather picnic: daily forecast
stars_tonight stargazing: moon cloud
how_long_drive drive_take: travel_time directions
is_road_closed: traffic
"""
