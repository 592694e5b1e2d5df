import { Box, Stack, TextInput } from '@mantine/core';
import { useWindowEvent } from '@mantine/hooks';
import type { Ref } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { Section } from '../../ui/section.tsx';
import { TwoColumns } from '../../ui/two-columns.tsx';
import { slugFrom, textOf } from '../config.ts';
import { LongTextField, TextField } from './config-fields.tsx';
import { errorText } from './field-messages.tsx';
import { useEditor, useField, useValue } from './model/editor-context.ts';
import { type Part, partOf } from './model/go-to-field.ts';
import { AccessSection } from './server/access-section.tsx';
import { ServerWideSection } from './server/server-wide-section.tsx';
import { ToolsSection } from './tools/tools-section.tsx';
import { ViewsSection } from './views/views-section.tsx';

/** The form of a new server whole; of a stored one the part whose tab is shown. The other one keeps its state. */
export function ConfigForm({ bar }: { bar: Ref<HTMLDivElement> }) {
  const { isNew } = useEditor();
  const { pathname } = useLocation();
  const navigate = useNavigate();
  const shown: Part = pathname.endsWith('/settings') ? 'settings' : 'tools';
  useWindowEvent('toolhost:open-part', ({ detail }) => {
    const part = partOf(detail);
    if (!isNew && part !== shown) void navigate(pathname.replace(/[^/]*$/, part), { replace: true });
  });
  return (
    <Box miw={0}>
      <Stack gap="md" display={isNew || shown === 'settings' ? 'flex' : 'none'}>
        <ServerSection />
        <AccessSection />
        <ServerWideSection />
      </Stack>
      <Stack gap="md" display={isNew || shown === 'tools' ? 'flex' : 'none'} mt={isNew ? 'md' : 0}>
        <ToolsSection bar={bar} />
        <ViewsSection />
      </Stack>
    </Box>
  );
}

function ServerSection() {
  const { isNew } = useEditor();
  const name = textOf(useValue(['name']));
  return (
    <Section title="Server">
      <Stack gap="sm">
        <TwoColumns from="sm">
          <NameField />
          <TextField
            path={['slug']}
            label="Slug"
            isRequired
            isMono
            isFixed={!isNew}
            placeholder={slugFrom(name) || 'my-server'}
            text={isNew ? 'Part of its address, for good.' : 'Cannot be changed.'}
          />
        </TwoColumns>
        <LongTextField
          path={['description']}
          label="Description"
          text="What the server is for; agents and people read it."
        />
      </Stack>
    </Section>
  );
}

/** The display name; the slug of a new server follows it until the slug is edited. */
function NameField() {
  const { isNew, store } = useEditor();
  const field = useField(['name']);
  const before = textOf(field.value);
  const change = (name: string) => {
    field.set(name);
    if (isNew && textOf(store.now().config.slug) === slugFrom(before)) store.set(['slug'], slugFrom(name));
  };
  return (
    <TextInput
      id={field.id}
      label="Name"
      description="Shown to people and agents."
      withAsterisk
      value={before}
      onChange={(event) => change(event.currentTarget.value)}
      onBlur={field.touch}
      error={errorText(field.errors)}
      readOnly={field.isReadOnly}
      autoComplete="off"
    />
  );
}
