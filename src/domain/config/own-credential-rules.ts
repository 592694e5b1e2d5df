import type { Problem } from '../../errors.ts';
import { findOurCredential } from '../credentials/own-credentials.ts';
import { type Authentications, credentialPath, credentialsOf, filledFields } from './authentication.ts';
import { constantsOf } from './input-schema.ts';
import type { OAuth } from './oauth.ts';
import { fillVariables, type ServerWide } from './server-wide.ts';
import type { Tool } from './tool.ts';
import { type View, viewToolOf } from './view.ts';

const message = 'holds an API key or a token of this service, which is never sent to an upstream; take it out';

type Config = ServerWide & {
  authentication?: Authentications | undefined;
  oauth?: OAuth | undefined;
  tools: readonly Tool[];
  views?: Record<string, View> | undefined;
};

/** The fields of a valid configuration whose text would send one of our credentials to an upstream. */
export function ownCredentialProblems(config: Config): Problem[] {
  const { authentication, oauth, tools } = config;
  const texts: FieldText[] = [
    ...credentialsOf(authentication).flatMap((one, index) => {
      const at = credentialPath(authentication, index);
      const own = [...filledFields, 'audience', 'resource', 'token_url'] as const;
      return [
        ...own.map((field): [string, string | undefined] => [`${at}.${field}`, one[field]]),
        ...entriesOf(`${at}.extra_params`, one.extra_params),
      ];
    }),
    ['oauth.client_secret', oauth?.client_secret],
    ...entriesOf('oauth.extra_params', oauth?.extra_params),
    ['base_url', config.base_url],
    ...entriesOf('headers', config.headers),
    ...Object.entries(config.variables ?? {}).map(([name, { value }]): [string, string] => [
      `variables.${name}.value`,
      value,
    ]),
  ];
  for (const [index, tool] of tools.entries())
    texts.push(...textsOfTool(tool).map(([path, text]): FieldText => [`tools[${index}].${path}`, text]));
  for (const [name, view] of Object.entries(config.views ?? {})) {
    for (const [index, entry] of (view.tools ?? []).entries())
      texts.push(...textsIn(`views.${name}.tools[${index}].arguments`, viewToolOf(entry).arguments));
  }
  // Of a large configuration only the first texts are decoded; a credential in its plain form is found in all of them.
  return problemsIn(texts, config.variables, findOurCredential());
}

/** The same for the fields of one tool; `isOurs` is shared by all of them, because it bounds their work together. */
export function ownCredentialProblemsOfTool(
  tool: Tool,
  variables: ServerWide['variables'],
  isOurs: (text: string) => boolean,
): Problem[] {
  return problemsIn(textsOfTool(tool), variables, isOurs);
}

type FieldText = [path: string, text: string | undefined];

function problemsIn(
  texts: readonly FieldText[],
  variables: ServerWide['variables'],
  isOurs: (text: string) => boolean,
): Problem[] {
  return texts.flatMap(([path, unfilled = '']) =>
    isOurs(fillVariables(unfilled, variables)) ? [{ path, message }] : [],
  );
}

function textsOfTool(tool: Tool): FieldText[] {
  return [
    ['url', tool.url],
    ...entriesOf('headers', tool.headers),
    ...textsIn('body_template', tool.body_template),
    ...constantsOf(tool.input_schema).flatMap(({ name, value }) => textsIn(`input_schema.${name}.value`, value)),
  ];
}

/** The texts of a JSON value, each at the path of the whole. */
function textsIn(path: string, value: unknown): [string, string][] {
  if (typeof value === 'string') return [[path, value]];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap((inner) => textsIn(path, inner));
}

function entriesOf(path: string, values: Record<string, string> = {}): [string, string][] {
  return Object.entries(values).map(([name, value]) => [`${path}.${name}`, value]);
}
