"""A bot of discord.py, which proves that the testkit's server speaks Discord's gateway and REST API.

It echoes texts with a button, changes its echo when the message changes, opens threads, sends files back, and answers a command,
a button and a form. Each thing that it receives is a line of JSON on standard output. The variables DISCORD_URL,
DISCORD_GATEWAY_URL and DISCORD_TOKEN name the server.
"""

import io
import json
import os

import discord
import yarl
from discord import app_commands
from discord.gateway import DiscordWebSocket
from discord.http import Route

ECHOES = {}


def emit(**fields):
    print(json.dumps(fields), flush=True)


class Form(discord.ui.Modal, title="Question"):
    answer = discord.ui.TextInput(label="Answer")

    async def on_submit(self, interaction):
        await interaction.response.send_message("You wrote " + self.answer.value, ephemeral=True)
        emit(form=self.answer.value, by=interaction.user.display_name)


class Buttons(discord.ui.View):
    @discord.ui.button(label="Press", style=discord.ButtonStyle.success, custom_id="pressed")
    async def press(self, interaction, button):
        await interaction.response.defer()
        await interaction.edit_original_response(view=None)
        await interaction.followup.send("You pressed " + button.custom_id, ephemeral=True)
        emit(press=button.custom_id, by=interaction.user.display_name)

    @discord.ui.button(label="Ask", custom_id="asked")
    async def ask(self, interaction, _button):
        await interaction.response.send_modal(Form())
        emit(asked=interaction.user.display_name)


class Bot(discord.Client):
    def __init__(self):
        intents = discord.Intents.default()
        intents.message_content = True
        super().__init__(intents=intents, max_ratelimit_timeout=30)
        self.tree = app_commands.CommandTree(self)
        self.is_known = False

    async def setup_hook(self):
        @self.tree.command(name="status", description="Show the status")
        @app_commands.describe(name="A name")
        async def status(interaction, name: str = ""):
            await interaction.response.defer(ephemeral=True, thinking=True)
            await interaction.edit_original_response(content="Status of " + name)
            emit(command=name, channel=interaction.channel_id, thread=isinstance(interaction.channel, discord.Thread))

        await self.tree.sync()

    async def on_ready(self):
        if self.is_known:
            emit(ready="again")
            return
        self.is_known = True
        fetched = await self.tree.fetch_commands()
        emit(bot=self.user.name, commands=len(fetched), guilds=[guild.name for guild in self.guilds])

    async def on_resumed(self):
        emit(resumed=True)

    async def on_message(self, message):
        if message.author == self.user:
            return
        thread = message.channel.id if isinstance(message.channel, discord.Thread) else None
        emit(text=message.content, sender=message.author.display_name, mention=self.user in message.mentions, thread=thread)
        try:
            await self.answer(message)
        except discord.HTTPException as error:
            emit(error=type(error).__name__, status=error.status, code=error.code)

    async def answer(self, message):
        if message.attachments:
            attachment = message.attachments[0]
            content = await attachment.read()
            file = discord.File(io.BytesIO(content.upper()), filename="upper-" + attachment.filename)
            await message.channel.send("done", file=file)
            await message.delete()
            emit(file=attachment.filename, size=len(content))
            return
        if message.content == "history":
            emit(history=[old.content async for old in message.channel.history(limit=10, oldest_first=True)])
            return
        channel = message.channel
        if message.content.endswith("open a thread"):
            channel = await message.create_thread(name="A thread")
        async with channel.typing():
            echo = await channel.send("**" + message.content + "**", view=Buttons(), nonce=str(message.id))
        ECHOES[message.id] = echo
        emit(echo=echo.id, channel=echo.channel.id)

    async def on_message_edit(self, _before, after):
        if after.author != self.user:
            await ECHOES[after.id].edit(content=after.content)
            emit(edited=after.content)


def main():
    Route.BASE = os.environ["DISCORD_URL"]
    DiscordWebSocket.DEFAULT_GATEWAY = yarl.URL(os.environ["DISCORD_GATEWAY_URL"] + "/")
    Bot().run(os.environ["DISCORD_TOKEN"], log_handler=None)


if __name__ == "__main__":
    main()
