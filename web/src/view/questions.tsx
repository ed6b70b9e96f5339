// Questions of an agent with their choices, and a field for another answer.

import { useSignal } from '@preact/signals';

import type { PermissionAnswer } from '../api/calls';
import { may } from '../state/app';
import type { QuestionItem, Request } from '../state/model';
import { Countdown } from './elapsed';
import { Icon } from './icons';

interface Choice {
  labels: string[];
  other: string;
}

export function QuestionForm({ request, onAnswer }: { request: Request; onAnswer: (answer: PermissionAnswer) => Promise<boolean> }) {
  const choices = useSignal<Record<string, Choice>>({});
  const isBusy = useSignal(false);
  const answersOf = (id: string) => {
    const { labels, other } = choices.value[id] ?? { labels: [], other: '' };
    return other.trim() === '' ? labels : [...labels, other.trim()];
  };
  const isComplete = request.questions.every((question) => answersOf(question.id).length > 0);
  const answer = async (value: PermissionAnswer) => {
    if (isBusy.value) return;
    isBusy.value = true;
    if (!(await onAnswer(value))) isBusy.value = false;
  };
  const submit = (event: Event) => {
    event.preventDefault();
    if (!isComplete) return;
    const answers = Object.fromEntries(request.questions.map((question) => [question.id, answersOf(question.id)]));
    void answer({ decision: 'allow', answers });
  };
  return (
    <form class="card decision question" onSubmit={submit} data-request={request.id}>
      <div class="card-head">
        <Icon name="question" />
        <h2>{request.questions.length === 1 ? 'The agent has a question' : 'The agent has questions'}</h2>
        {request.deadline !== undefined && <span class="card-deadline"><Countdown until={request.deadline} text="Closes" /></span>}
      </div>
      <div class="card-body">
        {request.questions.map((question, index) => (
          <Question
            question={question} name={`${request.id}-${index}`} choice={choices.value[question.id] ?? { labels: [], other: '' }}
            onChange={(choice) => { choices.value = { ...choices.value, [question.id]: choice }; }}
          />
        ))}
      </div>
      {may.value.approve ? (
        <div class="card-actions">
          <button type="submit" class="button primary" disabled={!isComplete || isBusy.value}>Answer</button>
          <button type="button" class="button" disabled={isBusy.value} onClick={() => void answer({ decision: 'deny' })}>Decline</button>
        </div>
      ) : <p class="muted">Your token may not answer questions.</p>}
    </form>
  );
}

function Question(props: { question: QuestionItem; name: string; choice: Choice; onChange: (choice: Choice) => void }) {
  const { question, name, choice, onChange } = props;
  const toggle = (label: string) => {
    const isChosen = choice.labels.includes(label);
    if (!question.multiple) onChange({ labels: [label], other: '' });
    else onChange({ ...choice, labels: isChosen ? choice.labels.filter((one) => one !== label) : [...choice.labels, label] });
  };
  return (
    <fieldset class="question-item">
      <legend dir="auto">{question.text}</legend>
      {question.options.map((option) => (
        <label class="option">
          <input
            type={question.multiple ? 'checkbox' : 'radio'} name={name} checked={choice.labels.includes(option.label)}
            onChange={() => toggle(option.label)}
          />
          <span dir="auto">
            <span class="option-label">{option.label}</span>
            {option.description !== undefined && <span class="muted option-text">{option.description}</span>}
          </span>
        </label>
      ))}
      <input
        type="text" class="other" dir="auto" placeholder={question.options.length === 0 ? 'Your answer' : 'Another answer'}
        aria-label={`Own answer to: ${question.text}`} value={choice.other}
        onInput={(event) => onChange({ labels: question.multiple ? choice.labels : [], other: event.currentTarget.value })}
      />
    </fieldset>
  );
}
