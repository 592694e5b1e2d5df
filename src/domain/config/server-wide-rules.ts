import type { Problem } from '../../errors.ts';
import { forwardedNameProblem } from '../http/headers.ts';
import { foldedHeader } from '../http/parameter-names.ts';
import { crowdedProblem, secretNamePattern } from '../http/placeholders.ts';
import { parseUrlTemplate } from '../http/url-template.ts';
import { bracesInUrl } from '../mistakes/literal-text.ts';
import { type ProblemList, shown } from '../problems/problems.ts';
import { credentialHeaders } from './authentication.ts';
import { filledHeaderProblems, filledLength, lengthProblem } from './filling/filled-lengths.ts';
import type { UrlRule } from './server-rules.ts';
import { fillVariables, type ServerWide, serverWideShape } from './server-wide.ts';
import { maxUrlLength } from './tool.ts';
import { checkHeaders, hostProblem, type ToolSurroundings } from './tool-rules.ts';

type Raw = { [field: string]: unknown };

/**
 * Adds problems of the fields that hold for all tools. Returns those fields for the rules of the tools: a field that is
 * wrong is left out or replaced, so that it is reported only once.
 */
export function checkServerWide(
  raw: Raw,
  surroundings: Omit<ToolSurroundings, 'wide' | 'shared'>,
  problems: ProblemList,
): ServerWide {
  const variables = serverWideShape.variables.safeParse(raw.variables).data;
  checkVariables(variables, problems);
  const given = serverWideShape.headers.safeParse(raw.headers).data;
  const crowded = crowdedProblem(given);
  const tooMuch =
    crowded === undefined ? filledHeaderProblems(given, variables) : [{ path: 'headers', message: crowded }];
  for (const problem of tooMuch) problems.add(() => problem);
  const headers = tooMuch.length === 0 ? given : undefined;
  const forward_headers = serverWideShape.forward_headers.safeParse(raw.forward_headers).data;
  const wide: ServerWide = {
    ...(variables && { variables }),
    ...(headers && { headers }),
    ...(forward_headers && { forward_headers }),
  };
  const inHeaders = problems.within((path) => `headers.${path}`);
  if (headers) checkHeaders(headers, { ...surroundings, wide }, inHeaders);
  if (forward_headers) {
    const found = forwardProblems(forward_headers, surroundings.authentication, headers);
    for (const problem of found) problems.add(() => problem);
  }
  const base = serverWideShape.base_url.safeParse(raw.base_url).data;
  if (base === undefined) return raw.base_url === undefined ? wide : { ...wide, base_url: placeholderBase };
  const tooLong = lengthProblem(filledLength(base, variables), maxUrlLength);
  const faults = tooLong === undefined ? baseUrlProblems(base, variables, surroundings) : [tooLong];
  for (const message of faults) problems.add(() => ({ path: 'base_url', message }));
  return { ...wide, base_url: faults.length > 0 ? placeholderBase : base };
}

/** A header that is passed on may be no credential, and none that the configuration sets itself. */
function forwardProblems(
  names: readonly string[],
  authentication: ToolSurroundings['authentication'],
  shared: ServerWide['headers'] = {},
): Problem[] {
  const taken = credentialHeaders(authentication).union(new Set(Object.keys(shared).map(foldedHeader)));
  return names.flatMap((name, index) => {
    const folded = foldedHeader(name);
    const message =
      forwardedNameProblem(name) ??
      (taken.has(folded)
        ? 'authentication, headers or an earlier entry has this header already; leave it out'
        : undefined);
    taken.add(folded);
    return message === undefined ? [] : [{ path: `forward_headers[${index}]`, message }];
  });
}

/** Stands for a base_url with problems while the tools below it are checked. */
const placeholderBase = 'https://base.invalid';

function checkVariables(variables: ServerWide['variables'] = {}, problems: ProblemList): void {
  for (const [name, { value, enum: allowed }] of Object.entries(variables)) {
    const add = (field: string, message: string) =>
      problems.add(() => ({ path: `variables.${name}${field}`, message }));
    if (!secretNamePattern.test(name)) add('', 'allowed as a name: a letter or _, then up to 63 letters, digits and _');
    if (/\{\{|\}\}/.test(value)) add('.value', 'holds {{ or }}; a variable is not filled inside another one');
    if (allowed && !allowed.includes(value))
      add('.value', `found ${shown(value)}; allowed by enum: ${allowed.slice(0, 20).map(shown).join(', ')}`);
  }
}

function baseUrlProblems(
  base: string,
  variables: ServerWide['variables'],
  { urlProblem }: Pick<ToolSurroundings, 'urlProblem'>,
): string[] {
  return [...bracesInUrl(base, new Set()), ...filledBaseProblems(fillVariables(base, variables), urlProblem)];
}

function filledBaseProblems(url: string, urlProblem: UrlRule): string[] {
  if (url.includes('?')) return ['has a query; allowed: https://host/path; write the query into the url of the tools'];
  // Which of its tokens are arguments is checked with each tool.
  const path = url.replace(/^[^:]*:\/\/[^/]*/, '');
  const tokens = [...path.matchAll(/:([A-Za-z_]\w*)/g)].map((match) => match[1] as string);
  const { template, problems } = parseUrlTemplate(url, tokens);
  if (!template) return problems;
  const fault = hostProblem(url, urlProblem);
  return fault === undefined ? [] : [fault];
}
