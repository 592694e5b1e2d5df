import { getMaxLength, isSecretField } from '@toolhost/tool-config/login';
import { checkLoginValue } from '@toolhost/tool-config/login-values';
import { html } from 'hono/html';
import { type Markup, renderPage, showInvisible } from '../http/page.ts';
import type { ConsentRequest } from './consent.ts';
import type { PeopleLoginServer } from './oauth-deps.ts';
import type { LoginFieldUse } from './people.ts';
import type { ValuesState } from './person-values.ts';

/** Returns the name of the input of a field in a form. */
function getInputName({ name }: Pick<LoginFieldUse, 'name'>): string {
  return `field.${name}`;
}

/** Returns the names of the fields that a form asks for: those without a usable value, or all of them. */
export function getAskedFields(
  fields: readonly LoginFieldUse[],
  { isNew, missing, refused }: ValuesState,
  asksAll: boolean,
): string[] {
  return fields
    .filter(({ name }) => asksAll || isNew || missing.includes(name) || refused.includes(name))
    .map(({ name }) => name);
}

/**
 * Reads the values of a form. Only fields that were asked are read. An empty input of a field with a stored value that
 * the API has not refused leaves that value unchanged.
 */
export function readFields(
  asked: readonly LoginFieldUse[],
  form: URLSearchParams,
  { values: stored, refused }: ValuesState,
): { values: Record<string, string>; problems: Record<string, string> } {
  const values: Record<string, string> = { ...stored };
  const problems: Record<string, string> = {};
  for (const field of asked) {
    const { name } = field;
    const text = form.get(getInputName(field)) ?? '';
    const isStored = Object.hasOwn(stored, name) && !refused.includes(name);
    if (text.trim() === '' && isStored && field.secret !== false) continue;
    const checked = checkLoginValue(field, text);
    if ('problem' in checked) problems[name] = checked.problem;
    else if (checked.value === '') delete values[name];
    else values[name] = checked.value;
  }
  return { values, problems };
}

type FieldsPage = {
  state: ValuesState;
  /** Problems of the previous attempt, by field. */
  problems: Readonly<Record<string, string>>;
  /** The previous attempt. */
  form?: URLSearchParams;
  sealed: string;
};

/**
 * Renders the form for the values that a person brings. It says which server and hosts get each value. The values are
 * checked by this service instead of the browser, so that every problem has one place and one wording.
 */
export function renderFieldsPage(server: PeopleLoginServer, request: ConsentRequest, page: FieldsPage): string {
  const fields = server.login.fields.filter(({ name }) => request.asked?.includes(name));
  const name = showInvisible(server.name);
  const hosts = formatHosts([...new Set(fields.flatMap((field) => field.hosts))], server.login.fields);
  const problems = new Map(
    fields.flatMap((field): [LoginFieldUse, string][] => {
      const problem = findProblem(field, page);
      return problem === undefined ? [] : [[field, problem]];
    }),
  );
  const [firstInvalid = fields[0]] = problems.keys();
  const renderOne = (field: LoginFieldUse) =>
    renderField(field, {
      page,
      problem: problems.get(field),
      hosts: formatHosts(field.hosts, server.login.fields),
      isFocused: field === firstInvalid,
    });
  return renderPage(
    `${problems.size > 0 ? 'Error: ' : ''}Your details for ${name}`,
    html`<h1>Your details for <bdi>${name}</bdi></h1>
<p class="soft">This server calls <bdi>${hosts}</bdi> for you and needs the following. Values are stored encrypted, are sent to these hosts only, and are used only for your own calls.</p>
${problems.size > 0 ? renderProblems(problems) : ''}
<form method="post" action="${new URL(server.issuer).pathname}/consent" autocomplete="off" novalidate>
<input type="hidden" name="request" value="${page.sealed}">
${request.view === undefined ? '' : html`<input type="hidden" name="view" value="${request.view}">`}
${fields.map(renderOne)}
<div class="actions">
<button class="primary" type="submit" name="decision" value="save">Save and continue</button>
<button type="submit" name="decision" value="deny">Cancel</button>
</div>
</form>`,
  );
}

const maxListedHosts = 5;

/** Lists hosts for people. A host that depends on a field shows the label of the field instead of its name. */
export function formatHosts(hosts: readonly string[], fields: readonly LoginFieldUse[]): string {
  const hiddenCount = hosts.length - maxListedHosts;
  const text = hosts.slice(0, maxListedHosts).join(', ') + (hiddenCount > 0 ? ` and ${hiddenCount} more hosts` : '');
  return text.replaceAll(/\{\{(\w+)\}\}/g, (placeholder, name) => {
    const field = fields.find((candidate) => candidate.name === name);
    return field ? `‹${showInvisible(field.label)}›` : placeholder;
  });
}

function findProblem({ name }: LoginFieldUse, { problems, state, form }: FieldsPage): string | undefined {
  const isUnchanged = !form && state.refused.includes(name);
  return problems[name] ?? (isUnchanged ? 'The API refused the stored value. Enter a new one.' : undefined);
}

function renderProblems(problems: ReadonlyMap<LoginFieldUse, string>): Markup {
  const heading =
    problems.size === 1 ? 'One value needs your attention' : `${problems.size} values need your attention`;
  return html`<div class="problems" role="alert"><strong>${heading}</strong>
<ul>${[...problems].map(([field, problem]) => html`<li><a href="#${getInputName(field)}">${showInvisible(field.label)}</a>: ${problem}</li>`)}</ul></div>`;
}

type RenderedField = { page: FieldsPage; problem: string | undefined; hosts: string; isFocused: boolean };

function renderField(
  field: LoginFieldUse,
  { page: { state, form }, problem, hosts, isFocused }: RenderedField,
): Markup {
  const { name, label } = field;
  const id = getInputName(field);
  const isSecret = isSecretField(field);
  const isKept = isSecret && !state.refused.includes(name) && Object.hasOwn(state.values, name);
  const value = isSecret ? '' : (form?.get(id) ?? state.values[name] ?? field.default ?? '');
  // A secret is not sent back to the browser, so one that had no problem must be entered again with the others.
  const isLost = isSecret && problem === undefined && (form?.get(id) ?? '').trim() !== '';
  const advice = isLost
    ? 'Enter it again; nothing has been stored yet. '
    : isKept
      ? 'Leave empty to keep the stored value. '
      : '';
  return html`<div class="field">
<label for="${id}">${showInvisible(label)}${field.optional ? html` <span class="soft">(optional)</span>` : ''}</label>
<input id="${id}" name="${id}" type="${isSecret ? 'password' : 'text'}" value="${value}" maxlength="${getMaxLength(field)}" autocomplete="off" autocapitalize="none" spellcheck="false"${isFocused ? html` autofocus` : ''}${field.optional || isKept ? '' : html` required`}${problem === undefined ? '' : html` aria-invalid="true"`} aria-describedby="${problem === undefined ? '' : `${id}.problem `}${id}.hint">
${problem === undefined ? '' : html`<p class="problem" id="${id}.problem">${problem}</p>`}
<small id="${id}.hint">${advice}Sent to <bdi>${hosts}</bdi>.${
    field.help === undefined
      ? ''
      : html` <a href="${field.help}" rel="noreferrer noopener" target="_blank">Where to find it</a> (${new URL(field.help).host})`
  }</small>
</div>`;
}
