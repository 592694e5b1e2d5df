import type { Problem } from '../../errors.ts';
import { findOurCredential } from '../credentials/own-credentials.ts';
import { filledCharacters, mostFilledOfField } from './filling/filled-lengths.ts';
import { fillVariables, type ServerWide } from './server-wide.ts';
import type { Tool } from './tool.ts';

const never = 'holds an API key or a token of this service, which is never sent to an upstream; take it out';
const ofName = `has a name that ${never}`;

/** Texts for agents. They are searched last, because only the first texts of a large configuration are decoded. */
const forAgents = new Set(['title', 'description', 'examples', 'output_schema']);

type IsOurs = (text: string) => boolean;

/**
 * The places of a valid configuration at which one of our credentials stands. Every text and every name is searched,
 * whatever field it is in: nearly all of them go to an upstream, to a provider or into the context of an agent, and a
 * field that is added later is searched too.
 */
export function ownCredentialProblems(config: ServerWide): Problem[] {
  // Of a large configuration only the first texts are decoded; a credential in its plain form is found in all of them.
  return problemsIn(config, config.variables, findOurCredential());
}

/** The same for one tool; `isOurs` is shared by all of them, because it bounds their work together. */
export function ownCredentialProblemsOfTool(tool: Tool, variables: ServerWide['variables'], isOurs: IsOurs): Problem[] {
  return problemsIn(tool, variables, isOurs);
}

/** The steps from the root to a value: names, and the numbers of entries. */
type Steps = readonly (string | number)[];

function problemsIn(root: object, variables: ServerWide['variables'], isOurs: IsOurs): Problem[] {
  const problems: Problem[] = [];
  const later: { steps: Steps; value: unknown }[] = [];
  const steps: (string | number)[] = [];
  const search = (value: unknown, isFirst: boolean): void => {
    if (typeof value === 'string') {
      if (isOurs(filledText(value, variables))) problems.push({ path: pathOf(steps), message: never });
      return;
    }
    if (typeof value !== 'object' || value === null) return;
    for (const [name, inner] of Object.entries(value)) {
      const isName = !Array.isArray(value);
      // Nothing below such a name is reported, because the path would show it.
      if (isName && isOurs(name)) {
        problems.push({ path: pathOf(steps), message: ofName });
        continue;
      }
      steps.push(isName ? name : Number(name));
      if (isFirst && forAgents.has(name)) later.push({ steps: [...steps], value: inner });
      else search(inner, isFirst);
      steps.pop();
    }
  };
  search(root, true);
  for (const one of later) {
    steps.splice(0, steps.length, ...one.steps);
    search(one.value, false);
  }
  return problems;
}

/** What is not filled, such as a description, may have any number of placeholders. */
function filledText(text: string, variables: ServerWide['variables']): string {
  return filledCharacters(text, variables) > mostFilledOfField ? text : fillVariables(text, variables);
}

function pathOf(steps: Steps): string {
  return steps.map((step, index) => (typeof step === 'number' ? `[${step}]` : `${index ? '.' : ''}${step}`)).join('');
}
