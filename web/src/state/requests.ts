// Permission requests and questions of agents.

import { type LogEvent, asObject, list, optionalText, text } from './events';
import type { Request } from './model';

export function requestOf(event: LogEvent): Request {
  return {
    ...common(event),
    isQuestion: false,
    toolName: text(event, 'toolName'),
    toolKind: text(event, 'kind'),
    server: optionalText(event, 'server'),
    toolId: optionalText(event, 'toolId'),
    input: event['input'],
    targets: list(event, 'targets').filter((target): target is string => typeof target === 'string'),
    permission: optionalText(event, 'permission'),
    options: list(event, 'options').map((option) => {
      const fields = asObject(option);
      return { kind: text(fields, 'kind'), name: text(fields, 'name') };
    }),
    questions: [],
  };
}

export function questionOf(event: LogEvent): Request {
  const questions = list(event, 'questions').map((question) => {
    const fields = asObject(question);
    const options = list(fields, 'options').map((option) => {
      const choice = asObject(option);
      return { label: text(choice, 'label'), description: optionalText(choice, 'description') };
    });
    return { id: text(fields, 'id'), text: text(fields, 'text'), multiple: fields['multiple'] === true, options };
  });
  return {
    ...common(event), isQuestion: true, toolName: '', toolKind: '', input: undefined, targets: [], options: [], questions,
  };
}

function common(event: LogEvent): Pick<Request, 'id' | 'turnId' | 'deadline' | 'at'> {
  return { id: text(event, 'requestId'), turnId: event.turnId, deadline: optionalText(event, 'deadline'), at: event.at };
}

export function answerOf(event: LogEvent): NonNullable<Request['answer']> {
  return {
    decision: text(event, 'decision'), by: optionalText(event, 'by'), message: optionalText(event, 'message'), at: event.at,
  };
}

/** Returns what became of a request, for people. */
export function outcomeText(answer: NonNullable<Request['answer']>, isQuestion = false): string {
  const by = answer.by === undefined ? '' : ` by ${answer.by.replace(/^http:/, '')}`;
  switch (answer.decision) {
    case 'allow':
    case 'allowed':
      return `${isQuestion ? 'Answered' : 'Allowed'}${by}`;
    case 'allow_always':
    case 'allowed_always':
      return `Always allowed${by}`;
    case 'deny':
    case 'denied':
      return `${isQuestion ? 'Declined' : 'Denied'}${by}`;
    case 'timed_out':
      return 'Denied: there was no answer in time';
    case 'worker_lost':
      return 'Denied: the worker of the turn was lost';
    case 'turn_ended':
      return 'Closed: the turn ended';
    default:
      return `${answer.decision.replaceAll('_', ' ')}${by}`;
  }
}
