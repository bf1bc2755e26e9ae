# Made by the letta-tool-bridge, which keeps it in step with the client's tool: please don't edit, rename or delete it.
# A client sends the tool along with its chat requests and runs it on its own side. When the agent calls it, the bridge
# hands the call to that client and the client's result back to the agent. What the tool takes is in its JSON schema.
# The bridge removes it here when no client has asked for it for a while.
def index_document(**kwargs):
    "A client's tool. The client runs it itself; this code only holds its place on the Letta server."
    return 'The client returned no result here.'
