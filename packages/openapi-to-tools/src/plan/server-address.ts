import { ProblemList } from '@toolhost/errors/problems';
import { secretNamePattern } from '@toolhost/tool-config/http/placeholders';
import { parseUrl } from '@toolhost/tool-config/http/read-url';
import { checkServerWide, type UrlRule } from '@toolhost/tool-config/server-rules';
import { maxVariableLength, maxVariables, serverWideShape } from '@toolhost/tool-config/server-wide';
import type { ApiDescription, ApiServer, Finding, ServerVariable } from '../model.ts';
import type { Question, RequiredSecret } from '../plan-outline.ts';
import { joinSentences, toPlainText } from '../tools/texts.ts';
import type { ImportChoices } from './choices.ts';

type Variables = Record<string, { value: string; description?: string; enum?: string[] }>;

/** Address that the tools call: the base URL with `{{NAME}}` for variables, and the questions that are still open. */
export type Address = {
  baseUrl: string | undefined;
  variables: Variables;
  questions: Question[];
  /** Secrets in the path, such as a bot's token. */
  secrets: RequiredSecret[];
  findings: Finding[];
};

/** Matches sample values of variables that no real API would use, such as `your-domain`. */
const placeholderPattern =
  /your|example|[<>{}]|xxx|my[-_]|^(?:domain|subdomain|tenant|company|customer|account|host(?:name)?|localhost|site|instance|organi[sz]ation|region)$/i;

/** Returns true if two addresses are the same. An import calls https even if the document says http. */
export function isSameAddress(first: string, second: string): boolean {
  const normalize = (url: string) => url.toLowerCase().replace(/^http:/, 'https:');
  return normalize(first) === normalize(second);
}

/** Returns the address that a person chose, or else the document's address, with questions about what is unknown. */
export function resolveServerAddress(
  description: ApiDescription,
  choices: ImportChoices,
  urlProblem: UrlRule = () => undefined,
): Address {
  const { servers } = description;
  const address: Address = { baseUrl: undefined, variables: {}, questions: [], secrets: [], findings: [] };
  const serverChoice = choices.server ?? choices.answers?.server;
  const server =
    serverChoice === undefined
      ? (servers.find(({ url }) => isAbsolute(url)) ?? servers[0])
      : getChosenServer(serverChoice, servers);
  const url = server && toAbsolute(server.url, choices.documentUrl);
  if (serverChoice === undefined) addServerQuestion(address, servers, server, url);
  if (!server || url === undefined) return address;
  const resolved = fillAddress(address, { ...server, url }, choices.answers ?? {});
  return serverChoice === undefined ? askIfRejected(resolved, urlProblem) : resolved;
}

/** Replaces an address that no configuration can use with a question, as if it were missing. */
function askIfRejected(address: Address, urlProblem: UrlRule): Address {
  const { baseUrl, variables, questions } = address;
  if (questions.some(({ required }) => required)) return address;
  const problems = new ProblemList();
  checkServerWide({ base_url: baseUrl, variables }, { authentication: undefined, urlProblem }, problems);
  const parsed = serverWideShape.base_url.safeParse(baseUrl);
  const token = /(?<!\w):[A-Za-z_]\w*/.exec((baseUrl ?? '').replace(/^[a-z]+:\/\/[^/]*/i, ''))?.[0];
  if (token !== undefined)
    problems.add(() => ({ path: 'base_url', message: `${token} is a placeholder for a part of it` }));
  const [problem] = parsed.success ? problems.all() : [{ message: 'the address is too long' }];
  if (!problem) return address;
  const quotedUrl = JSON.stringify((baseUrl ?? '').slice(0, 100));
  const question = `The document's address ${quotedUrl} cannot be called: ${problem.message}. What is the API's address, such as https://api.example.com?`;
  const otherQuestions = questions.filter(({ name }) => name !== 'server');
  return {
    ...address,
    baseUrl: undefined,
    variables: {},
    secrets: [],
    questions: [{ name: 'server', required: true, question }, ...otherQuestions],
  };
}

/**
 * Returns the address of an operation that has its own servers, or the reason why it cannot be used. Returns undefined
 * if the operation uses the server's address. Resolves a relative URL against the server's address, or else the
 * document's address.
 */
export function getOwnAddress(
  servers: readonly ApiServer[] | undefined,
  choices: ImportChoices,
  serverAddress: Address,
): { url: string } | { problem: string } | undefined {
  const ownServer = servers?.find(({ url }) => isAbsolute(url)) ?? servers?.[0];
  if (!ownServer || choices.server !== undefined || choices.answers?.server !== undefined) return undefined;
  const url = toAbsolute(ownServer.url, fillVariables(serverAddress) ?? choices.documentUrl);
  if (url === undefined)
    return serverAddress.baseUrl === undefined ? undefined : { problem: 'its own address, which is relative' };
  const emptyAddress: Address = { baseUrl: undefined, variables: {}, questions: [], secrets: [], findings: [] };
  const address = fillAddress(emptyAddress, { ...ownServer, url }, choices.answers ?? {});
  const openQuestion = address.questions.find(({ required }) => required);
  if (openQuestion) {
    const name = JSON.stringify(openQuestion.name.slice(0, 60));
    return { problem: `its own address needs a value for ${name}; set it in answers` };
  }
  if (address.secrets.length > 0) return { problem: 'its own address, which contains a secret' };
  return { url: fillVariables(address) ?? '' };
}

function fillVariables({ baseUrl, variables }: Address): string | undefined {
  return baseUrl?.replaceAll(/\{\{(\w+)\}\}/g, (_, name: string) => variables[name]?.value ?? '');
}

function getChosenServer(choice: string, servers: readonly ApiServer[]): ApiServer {
  const index = /^\d{1,3}$/.test(choice) ? Number(choice) - 1 : -1;
  return (
    servers[index] ??
    servers.find(({ url }) => url === choice) ?? { url: choice.trim(), description: '', variables: [] }
  );
}

function isAbsolute(url: string): boolean {
  return /^https?:\/\/[^/]/i.test(url) || /^\/\/[^/]/.test(url) || /^\{[^{}]+\}/.test(url);
}

/** Matches file hosts. No API runs where its description is hosted. */
const fileHostPattern =
  /^https?:\/\/(?:raw|gist)\.githubusercontent\.com\/|^https?:\/\/(?:cdn\.jsdelivr\.net|unpkg\.com|gitlab\.com|bitbucket\.org|github\.com)\//i;

/** Resolves a relative URL against the address of the document. */
function toAbsolute(url: string, documentUrl: string | undefined): string | undefined {
  if (/^\/\/[^/]/.test(url)) return `https:${url}`;
  if (isAbsolute(url)) return url;
  if (/^[\w-]+(?:\.[\w-]+)+(?:[:/]|$)/.test(url)) return `https://${url}`;
  const isApiHost = documentUrl !== undefined && !fileHostPattern.test(documentUrl) && !url.includes('{');
  return isApiHost ? parseUrl(url, documentUrl)?.href : undefined;
}

function addServerQuestion(
  address: Address,
  servers: readonly ApiServer[],
  server: ApiServer | undefined,
  url: string | undefined,
): void {
  if (url === undefined) {
    const isRelative = server !== undefined && server.url !== '/';
    const description = isRelative
      ? `only the relative address ${JSON.stringify(server.url.slice(0, 100))}`
      : 'no address';
    address.questions.push({
      name: 'server',
      required: true,
      question: `The document has ${description}. What is the API's address, such as https://api.example.com?`,
    });
  } else if (servers.length > 1) {
    const options = servers.slice(0, 20).map((option, index) => ({
      value: String(index + 1),
      meaning: [option.url, toPlainText(option.description, 100)].filter((text) => text !== '').join(': '),
    }));
    address.questions.push({
      name: 'server',
      required: false,
      question: 'Which server should the tools call?',
      options,
      assumed: url,
    });
  }
}

function fillAddress(address: Address, server: ApiServer, answers: Readonly<Record<string, string>>): Address {
  let base = trimUrl(toHttps(server.url, address.findings));
  for (const variable of server.variables) {
    if (isSecretVariable(variable.name, base)) {
      const name = toVariableName(variable.name).toUpperCase();
      base = base.replaceAll(`{${variable.name}}`, `{{${name}}}`);
      address.secrets.push({
        name,
        description: toPlainText(variable.description, 200) || 'Part of the API address',
      });
      continue;
    }
    const name = toVariableName(variable.name);
    const answer = Object.hasOwn(answers, variable.name)
      ? answers[variable.name]
      : Object.hasOwn(answers, name)
        ? answers[name]
        : undefined;
    const value = addScheme(answer ?? variable.fallback ?? '', base.startsWith(`{${variable.name}}`));
    if (answer === undefined) address.questions.push(toQuestion(variable));
    // A variable that is the scheme or contains slashes cannot be filled in later.
    if (/^https?$|\/|^$/.test(value) || !canBeVariable(name, value, address)) {
      base = base.replaceAll(
        `{${variable.name}}`,
        value === 'http'
          ? 'https'
          : value.replaceAll(/^\/+|(?<!\/)\/+$/g, (edge) => (value.includes('://') ? edge : '')),
      );
      continue;
    }
    base = base.replaceAll(`{${variable.name}}`, `{{${name}}}`);
    const description = toPlainText(variable.description, 300);
    const options = variable.options.slice(0, 100).includes(value)
      ? variable.options.filter((option) => option.length <= maxVariableLength).slice(0, 100)
      : [];
    address.variables[name] = {
      value,
      ...(description !== '' && { description }),
      ...(options.length > 1 && { enum: [...options] }),
    };
  }
  return { ...address, baseUrl: trimUrl(toHttps(base, address.findings)) };
}

/** Returns true if the configuration can use this variable. */
function canBeVariable(name: string, value: string, { variables }: Address): boolean {
  return (
    secretNamePattern.test(name) &&
    name !== '__proto__' &&
    value.length <= maxVariableLength &&
    !/\p{Cc}|\{\{|\}\}/u.test(value) &&
    Object.keys(variables).length < maxVariables
  );
}

/** Adds https:// to a host if the address begins with the variable, as in collections and scripts. */
function addScheme(value: string, isAtStart: boolean): string {
  return isAtStart && /^[\w-]+(?:\.[\w-]+)+(?::\d+)?(?:\/|$)/.test(value) ? `https://${value}` : value;
}

/** Returns true for a path variable that is named like a credential. A host cannot contain a secret. */
export function isSecretVariable(name: string, url: string): boolean {
  return isCredentialName(name) && !/^[a-z]+:\/\/[^/]*/i.exec(url)?.[0].includes(`{${name}}`);
}

function isCredentialName(name: string): boolean {
  return /token|secret|passw|credential|(?:api|access)[-_ ]?key/i.test(name);
}

function toQuestion(variable: ServerVariable): Question {
  const { name, fallback, options } = variable;
  const hasDefault = fallback !== undefined && !placeholderPattern.test(fallback);
  const text = toPlainText(variable.description, 200);
  return {
    name,
    question: joinSentences([
      text || `Value of ${JSON.stringify(name)} in the API address`,
      isCredentialName(name)
        ? 'It is part of the host, which cannot contain a secret: everyone who can read the configuration sees it'
        : '',
    ]),
    required: !hasDefault,
    ...(options.length > 0 && { options: options.slice(0, 50).map((value) => ({ value, meaning: '' })) }),
    ...(fallback !== undefined && { assumed: fallback }),
  };
}

/** Returns the name of a variable in the configuration. */
export function toVariableName(name: string): string {
  return name.replaceAll(/\W+/g, '_').replace(/^(?=\d)/, '_');
}

/** Replaces http with https. Plain http is rejected for upstreams, and every public API supports https. */
function toHttps(url: string, findings: Finding[]): string {
  if (!/^http:\/\//i.test(url)) return url;
  if (/^http:\/\/(?:localhost|127\.|\[::1\]|10\.|192\.168\.)/i.test(url)) return url;
  findings.push({ at: 'servers', message: 'http is replaced with https' });
  return url.replace(/^http:/i, 'https:');
}

function trimUrl(url: string): string {
  return url
    .replace(/[?#].*$/s, '')
    .replace(/(?<!\/)\/+$/, '')
    .replace(/([^:/])\/{2,}/g, '$1/');
}
