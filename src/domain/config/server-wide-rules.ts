import { crowdedProblem, secretNamePattern } from '../http/placeholders.ts';
import { parseUrlTemplate } from '../http/url-template.ts';
import { bracesInUrl } from '../mistakes/literal-text.ts';
import { type ProblemList, shown } from '../problems/problems.ts';
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
  surroundings: Omit<ToolSurroundings, 'wide'>,
  problems: ProblemList,
): ServerWide {
  const variables = serverWideShape.variables.safeParse(raw.variables).data;
  checkVariables(variables, problems);
  const given = serverWideShape.headers.safeParse(raw.headers).data;
  const crowded = crowdedProblem(given);
  if (crowded !== undefined) problems.add(() => ({ path: 'headers', message: crowded }));
  const headers = crowded === undefined ? given : undefined;
  const wide: ServerWide = { ...(variables && { variables }), ...(headers && { headers }) };
  const inHeaders = problems.within((path) => `headers.${path}`);
  if (headers) checkHeaders(headers, { ...surroundings, wide }, inHeaders);
  const base = serverWideShape.base_url.safeParse(raw.base_url).data;
  if (base === undefined) return raw.base_url === undefined ? wide : { ...wide, base_url: placeholderBase };
  const faults = [...bracesInUrl(base, new Set()), ...baseUrlProblems(fillVariables(base, variables), surroundings)];
  for (const message of faults) problems.add(() => ({ path: 'base_url', message }));
  return { ...wide, base_url: faults.length > 0 ? placeholderBase : base };
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

function baseUrlProblems(url: string, { urlProblem }: Omit<ToolSurroundings, 'wide'>): string[] {
  if (url.length > maxUrlLength) return [`has ${url.length} characters when filled; allowed: ${maxUrlLength}`];
  if (url.includes('?')) return ['has a query; allowed: https://host/path; write the query into the url of the tools'];
  // Which of its tokens are arguments is checked with each tool.
  const path = url.replace(/^[^:]*:\/\/[^/]*/, '');
  const tokens = [...path.matchAll(/:([A-Za-z_]\w*)/g)].map((match) => match[1] as string);
  const { template, problems } = parseUrlTemplate(url, tokens);
  if (!template) return problems;
  const fault = hostProblem(url, urlProblem);
  return fault === undefined ? [] : [fault];
}
