"""Everyday words about drawings and designs. See `related.py`."""

ROWS = """
layout_drawing mockup mock_up draft_of_page sketch wireframe design: file node frame figma
layer one_layer part_of_design element: node get
wording_mockup text_in_design words_in_design: text content set
picture_of_design design_as_picture png: export image render
reusable building_block parts_of_design: component components instance
colours_design our_colours brand_colours colours: color styles variables fill
letters_look typeface typefaces lettering: font typography style text
rounded rounded_corners round_corners corners round: corner radius
see_through half_see_through transparent: opacity
shade drop_shadow: shadow effects
glow blurred blur: effect effects
outline_of border: stroke
box_with draw_box square: rectangle create
circle oval round_shape: ellipse
evenly distances_between arranged_automatically: auto_layout
show_to_developers for_developers hand_to_developers: dev inspect code
try_click_through clickable click_dummy: prototype flow
older_design: version history
remark_on_design: comment
code_from_design design_to_code: code context
code_belongs which_code_component: code connect map
design_tokens: variables styles
what_figma_projects design_projects: projects list
design_files: files list
turn_object turned: rotate
wide_narrow width: resize
place_of_object: move position
behind_front layer_order: order
group_objects: group
make_component: component create
text_layer: text
image_into_design: image fill
space_inside padding: auto_layout
guide_lines: grid layout
straight_line_draw: line
make_darker fill_colour colour_of: fill color
arrow: line connector
round_picture: ellipse radius
which_fonts: fonts styles text
what_colours: styles variables colors
screens_of_design: frames nodes
share_design: share link
pictures_from_design: export images assets
what_is_selected selected_now: selection
keep_this_state_design: save version
loosen_instance: detach instance
ready_for_coding: dev status
flow_chart flowchart draw_process: diagram generate
click_leads_to: prototype link
name_layer: rename layer
gradients: fill
distribute_evenly spaced_evenly: auto_layout
"""
