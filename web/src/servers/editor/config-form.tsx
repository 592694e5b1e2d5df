import { Stack, TextInput } from '@mantine/core';
import { Section } from '../../ui/section.tsx';
import { TwoColumns } from '../../ui/two-columns.tsx';
import { slugFrom, textOf } from '../config.ts';
import { LongTextField, TextField } from './config-fields.tsx';
import { errorText } from './field-messages.tsx';
import { useEditor, useField, useValue } from './model/editor-context.ts';
import { AccessSection } from './server/access-section.tsx';
import { ServerWideSection } from './server/server-wide-section.tsx';
import { ToolsSection } from './tools/tools-section.tsx';
import { ViewsSection } from './views/views-section.tsx';

export function ConfigForm() {
  const { isNew } = useEditor();
  const name = textOf(useValue(['name']));
  return (
    <Stack gap="md" miw={0}>
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
      <AccessSection />
      <ServerWideSection />
      <ToolsSection />
      <ViewsSection />
    </Stack>
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
