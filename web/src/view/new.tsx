// A new conversation: one sentence, the agents, three examples, and the composer.

import { agents, loadAgents } from '../state/app';
import { Composer } from './composer';
import { NEW, composerText, newSettings } from './composerstate';
import { Icon } from './icons';
import { MenuButton } from './menubutton';
import { NewChoices } from './settings';
import { agentName } from './titles';

const EXAMPLES = [
  'What does this project do, and where would I start to read?',
  'Run the tests, and fix the first one that fails.',
  'Review the last commit: what could go wrong?',
];

export function NewConversation() {
  return (
    <main class="view new">
      <header class="head bare"><MenuButton /></header>
      <div class="welcome">
        <h1>What should the agent do?</h1>
        <Agents />
        <ul class="examples">
          {EXAMPLES.map((text) => (
            <li>
              <button type="button" class="example" onClick={() => { composerText(NEW, text); document.getElementById('composer')?.focus(); }}>
                {text}
              </button>
            </li>
          ))}
        </ul>
      </div>
      <div class="dock">
        <Composer conversation={NEW} placeholder="Message the agent"><NewChoices /></Composer>
      </div>
    </main>
  );
}

function Agents() {
  const known = agents.value;
  if (known === undefined) return <p class="muted agents-note">Looking for agents…</p>;
  const ready = known.filter((agent) => agent.available);
  if (ready.length === 0) {
    return (
      <div class="failure" role="alert">
        <Icon name="warning" />
        <div>
          <strong>No agent can run</strong>
          {known.filter((agent) => agent.problem !== undefined).map((agent) => <div class="failure-text">{agentName(agent.name)}: {agent.problem}</div>)}
          <button type="button" class="text-button" onClick={() => void loadAgents()}>Look again</button>
        </div>
      </div>
    );
  }
  const selected = newSettings.value.agent ?? known.find((agent) => agent.isDefault)?.name;
  return (
    <div class="agent-cards" role="group" aria-label="Agent">
      {ready.map((agent) => (
        <button
          type="button" class="agent-card" aria-pressed={agent.name === selected}
          onClick={() => { newSettings.value = { ...newSettings.value, agent: agent.name, model: '' }; }}
        >
          <span class="agent-card-name">{agentName(agent.name)}</span>
          <span class="muted">{agent.version ?? 'unknown version'}</span>
        </button>
      ))}
    </div>
  );
}
