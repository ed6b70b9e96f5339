// The choice of agent, model and permission, for a new conversation and for one that exists.

import { useRef } from 'preact/hooks';
import { useSignal } from '@preact/signals';

import * as api from '../api/calls';
import type { Agent, Conversation } from '../api/types';
import { agents, may, report, updated } from '../state/app';
import { newSettings } from './composerstate';
import { agentName } from './titles';

const PERMISSIONS = [
  { value: 'read-only', text: 'Read only' },
  { value: 'ask', text: 'Ask first' },
  { value: 'edit', text: 'Edit files' },
  { value: 'full', text: 'Everything' },
];

interface Settings {
  agent: string;
  model: string;
  permission: string;
}

export function NewChoices() {
  const known = agents.value ?? [];
  const initial = known.find((agent) => agent.isDefault) ?? known.find((agent) => agent.available);
  const settings = newSettings.value;
  return (
    <Choices
      settings={{ agent: settings.agent ?? initial?.name ?? '', model: settings.model ?? '', permission: settings.permission ?? '' }}
      onChange={(change) => { newSettings.value = { ...settings, ...change }; }}
    />
  );
}

export function ConversationChoices({ details }: { details: Conversation }) {
  const change = async (changes: Partial<Settings>) => {
    try {
      const { agent, model, permission } = changes;
      updated(
        await api.updateConversation(details.id, {
          agent,
          model: model === '' ? null : model,
          permission: permission === '' ? null : permission,
        }),
      );
    } catch (error) {
      report('The setting was not changed', error);
    }
  };
  return (
    <Choices
      settings={{ agent: details.agent, model: details.model ?? '', permission: details.permission ?? '' }}
      onChange={(changes) => void change(changes)}
    />
  );
}

function Choices({ settings, onChange }: { settings: Settings; onChange: (changes: Partial<Settings>) => void }) {
  const known = agents.value ?? [];
  const names = known.map((agent) => agent.name);
  return (
    <>
      <select
        class="choice" aria-label="Agent" value={settings.agent}
        onChange={(event) => onChange({ agent: event.currentTarget.value, model: '' })}
      >
        {!names.includes(settings.agent) && <option value={settings.agent}>{settings.agent === '' ? 'Agent' : agentName(settings.agent)}</option>}
        {known.map((agent) => <AgentOption agent={agent} />)}
      </select>
      <ModelField model={settings.model} onChange={(model) => onChange({ model })} />
      <select
        class="choice" aria-label="Permission" value={settings.permission}
        onChange={(event) => onChange({ permission: event.currentTarget.value })}
      >
        <option value="">Default permission</option>
        {PERMISSIONS.filter(({ value }) => value !== 'full' || may.value.operate).map(({ value, text }) => <option value={value}>{text}</option>)}
      </select>
    </>
  );
}

function AgentOption({ agent }: { agent: Agent }) {
  return (
    <option value={agent.name} disabled={!agent.available}>
      {agentName(agent.name)}{agent.available ? '' : ' (not available)'}
    </option>
  );
}

/** Vendors have no list of models that holds for every account, so the model is typed. */
function ModelField({ model, onChange }: { model: string; onChange: (model: string) => void }) {
  const field = useRef<HTMLInputElement>(null);
  const isEditing = useSignal(false);
  const save = () => {
    // The field that is removed loses the focus once more.
    if (!isEditing.value) return;
    isEditing.value = false;
    const value = field.current?.value.trim() ?? '';
    if (value !== model) onChange(value);
  };
  if (!isEditing.value) {
    return (
      <button type="button" class="choice" aria-label={model === '' ? undefined : `Model: ${model}`} onClick={() => { isEditing.value = true; }}>
        <bdi>{model === '' ? 'Default model' : model}</bdi>
      </button>
    );
  }
  return (
    <input
      ref={field} class="choice model-field" aria-label="Model" placeholder="Default model" maxLength={500} dir="ltr" autofocus
      defaultValue={model} onBlur={save} spellcheck={false} autocapitalize="off"
      onKeyDown={(event) => {
        if (event.key === 'Enter') { event.preventDefault(); save(); }
        if (event.key === 'Escape') { event.stopPropagation(); isEditing.value = false; }
      }}
    />
  );
}
