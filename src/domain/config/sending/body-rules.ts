import type { Problem } from '../../../errors.ts';
import { mediaTypeOf } from '../../http/headers.ts';
import { foldedHeader } from '../../http/parameter-names.ts';
import { isDeeperThan, isRawNumber } from '../../json/json.ts';
import { didYouMean, type Guesses } from '../../problems/did-you-mean.ts';
import { shown } from '../../problems/problems.ts';
import type { Argument } from './argument.ts';
import { parseBodyTemplate } from './body-template.ts';
import { type BodyFields, bodyEncodings, contentTypeOfTool, encodingOf, isEncoding } from './destinations.ts';

export const deepestTemplate = 32;
const mostTokens = 1000;

/** The problems of `body` and `body_template`. `inUrl` are the arguments in the URL. */
export function bodyProblems(
  tool: BodyFields,
  declared: readonly Argument[],
  inUrl: readonly string[],
  guesses: Guesses,
): Problem[] {
  const names = declared.map((argument) => argument.name);
  if (tool.method === 'HEAD' && (tool.body !== undefined || tool.body_template !== undefined)) {
    const path = tool.body === undefined ? 'body_template' : 'body';
    return [{ path, message: 'a HEAD request has no body; leave it out' }];
  }
  return [...encodingProblems(tool, names, inUrl, guesses), ...templateProblemsOf(tool, names, guesses)];
}

function encodingProblems(
  tool: BodyFields,
  names: readonly string[],
  inUrl: readonly string[],
  guesses: Guesses,
): Problem[] {
  const { body } = tool;
  if (body === undefined || body === '') return [];
  const problem = (message: string) => [{ path: 'body', message }];
  if (!isEncoding(body) && !names.includes(body)) {
    const guess = didYouMean(body, [...bodyEncodings, ...names], guesses);
    return problem(
      `found ${JSON.stringify(body.slice(0, 64))}; allowed: json, form, multipart or the name of an argument${guess}`,
    );
  }
  if (tool.body_template !== undefined && body !== 'json') {
    return problem('not together with body_template, which makes a JSON body; drop one of the two');
  }
  if (!isEncoding(body) && inUrl.includes(body)) {
    return problem(`"${body}" stands in the url already; name another argument`);
  }
  const type = contentTypeOfTool(tool);
  const implied = type === undefined ? undefined : encodingOf(type);
  // The type of JSON or of a form can be replaced by any other, but that of multipart holds our boundary.
  const contradicts = implied !== undefined ? implied !== body : type !== undefined && body === 'multipart';
  if (isEncoding(body) && contradicts)
    return problem(`"${body}" contradicts the Content-Type header; drop one of the two`);
  return [];
}

function templateProblemsOf(
  { body_template: template }: BodyFields,
  names: readonly string[],
  guesses: Guesses,
): Problem[] {
  if (template === undefined) return [];
  const problem = (message: string) => [{ path: 'body_template', message }];
  if (isDeeperThan(template, deepestTemplate)) return problem(`nested deeper than ${deepestTemplate} levels`);
  const { repeats, names: used } = parseBodyTemplate(template, names);
  const tokens = used.length + repeats.reduce((sum, [, count]) => sum + count - 1, 0);
  if (tokens > mostTokens) return problem(`has ${tokens} arguments in it; allowed: at most ${mostTokens}`);
  const unknown = wholeTexts(template).find((text) => /^:[A-Za-z_]\w*$/.test(text) && !names.includes(text.slice(1)));
  if (unknown === undefined) return [];
  return problem(
    `${shown(unknown)} looks like a token, but input_schema has no such argument${didYouMean(unknown.slice(1), names, guesses)}`,
  );
}

function wholeTexts(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null && !isRawNumber(value)
    ? Object.values(value).flatMap(wholeTexts)
    : [];
}

/** The problem of a form that a GET request cannot have, because nothing goes into it. */
export function emptyFormProblem({ method, body }: BodyFields, inBody: readonly Argument[]): Problem | undefined {
  if (method !== 'GET' || (body !== 'form' && body !== 'multipart') || inBody.length > 0) return undefined;
  return {
    path: 'body',
    message:
      'no argument goes into the body of this GET request; say "in": "body" for those that do, or leave this out',
  };
}

/** The problem of a static Content-Type that the body contradicts. `inBody` are the arguments that the body is made of. */
export function contentTypeProblem(tool: BodyFields, inBody: readonly Argument[]): Problem | undefined {
  const type = contentTypeOfTool(tool);
  const isTemplate = tool.body_template !== undefined;
  if (type === undefined || encodingOf(type) === 'json' || (inBody.length === 0 && !isTemplate)) return undefined;
  // Some services have names of their own for JSON, such as application/x-amz-json-1.1.
  if (mediaTypeOf(type).includes('json') || (tool.body === 'json' && encodingOf(type) === undefined)) return undefined;
  const path = `headers.${Object.keys(tool.headers).find((name) => foldedHeader(name) === 'content-type')}`;
  const found = `found ${shown(type)}, but`;
  if (isTemplate) return { path, message: `${found} body_template makes a JSON body; leave this header out` };
  const argument = inBody.find(({ name }) => name === tool.body);
  if (argument && (argument.type === 'object' || argument.type === 'array')) {
    return {
      path,
      message: `${found} the argument ${argument.name} is sent as JSON; make it a string, or leave this header out`,
    };
  }
  if (tool.body !== undefined || encodingOf(type) !== undefined) return undefined;
  const message = `${found} the arguments are sent as JSON; name the one argument that is the body in \`body\`, or say "body": "json"`;
  return { path, message };
}
