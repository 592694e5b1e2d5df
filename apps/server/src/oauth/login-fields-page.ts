import { getMaxLength, isSecretField } from '@toolhost/tool-config/login';
import { html } from 'hono/html';
import { type Markup, renderPage, showInvisible } from '../http/page.ts';
import type { ConsentRequest } from './consent.ts';
import { getInputName } from './login-fields.ts';
import type { PeopleLoginServer } from './oauth-deps.ts';
import type { LoginFieldUse } from './people.ts';
import type { ValuesState } from './person-values.ts';

type FieldsPage = {
  state: ValuesState;
  /** Problems of the previous attempt, by field. */
  problems: Readonly<Record<string, string>>;
  /** The previous attempt. */
  form?: URLSearchParams;
  sealed: string;
};

/** Renders the form for the values that a person brings. It says which server and hosts get each value. */
export function renderFieldsPage(server: PeopleLoginServer, request: ConsentRequest, page: FieldsPage): string {
  const fields = server.login.fields.filter(({ name }) => request.asked?.includes(name));
  const name = showInvisible(server.name);
  const hosts = [...new Set(fields.flatMap((field) => field.hosts))];
  const firstProblem = fields.find((field) => page.problems[field.name] !== undefined);
  return renderPage(
    `Your details for ${name}`,
    html`<h1>Your details for <bdi>${name}</bdi></h1>
<p class="soft">This server calls <bdi>${formatHosts(hosts)}</bdi> for you and needs the following. Values are stored encrypted, are sent to these hosts only, and are used only for your own calls.</p>
${firstProblem ? html`<p class="warn" role="alert">Check “${showInvisible(firstProblem.label)}” below.</p>` : ''}
<form method="post" action="${new URL(server.issuer).pathname}/consent" autocomplete="off" novalidate>
<input type="hidden" name="request" value="${page.sealed}">
${request.view === undefined ? '' : html`<input type="hidden" name="view" value="${request.view}">`}
${fields.map((field) => renderField(field, page, field === (firstProblem ?? fields[0])))}
<div class="actions">
<button class="primary" type="submit" name="decision" value="save">Save and continue</button>
<button type="submit" name="decision" value="deny">Cancel</button>
</div>
</form>`,
  );
}

const maxListedHosts = 5;

function formatHosts(hosts: readonly string[]): string {
  const hiddenCount = hosts.length - maxListedHosts;
  return hosts.slice(0, maxListedHosts).join(', ') + (hiddenCount > 0 ? ` and ${hiddenCount} more hosts` : '');
}

function renderField(field: LoginFieldUse, page: FieldsPage, isFocused: boolean): Markup {
  const { name, label, hosts } = field;
  const { state, problems, form } = page;
  const id = getInputName(field);
  const isSecret = isSecretField(field);
  const isRefused = state.refused.includes(name);
  const isKept = isSecret && !isRefused && Object.hasOwn(state.values, name);
  const problem =
    problems[name] ?? (isRefused && !form ? 'The API refused the stored value. Enter a new one.' : undefined);
  const value = isSecret ? '' : (form?.get(id) ?? state.values[name] ?? field.default ?? '');
  return html`<div class="field">
<label for="${id}">${showInvisible(label)}${field.optional ? html` <span class="soft">(optional)</span>` : ''}</label>
<input id="${id}" name="${id}" type="${isSecret ? 'password' : 'text'}" value="${value}" maxlength="${getMaxLength(field)}" autocomplete="off" autocapitalize="none" spellcheck="false"${isFocused ? html` autofocus` : ''}${field.optional || isKept ? '' : html` required`}${problem === undefined ? '' : html` aria-invalid="true"`} aria-describedby="${id}.hint">
<small id="${id}.hint">${problem === undefined ? '' : html`<span class="bad">${problem}</span> `}${isKept ? 'Leave empty to keep the stored value. ' : ''}Sent to <bdi>${formatHosts(hosts)}</bdi>.${
    field.help === undefined
      ? ''
      : html` <a href="${field.help}" rel="noreferrer noopener" target="_blank">Where to find it</a> (${new URL(field.help).host})`
  }</small>
</div>`;
}
