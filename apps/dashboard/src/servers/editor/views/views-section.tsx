import { Button, Group, Stack, Text, TextInput } from '@mantine/core';
import { IconPlus } from '@tabler/icons-react';
import { createSuggestionBudget } from '@toolhost/errors/problems';
import { getViewNameProblem } from '@toolhost/tool-config/view-name';
import { useState } from 'react';
import type { JsonObject } from '../../../api-types.ts';
import { Form } from '../../../ui/form.tsx';
import { Section } from '../../../ui/section.tsx';
import { toVisible } from '../../../ui/text/visible.ts';
import { getViews } from '../../config.ts';
import { Errors, Warnings } from '../field-messages.tsx';
import { useEditor, useField } from '../model/editor-context.ts';
import { ViewItem } from './view-item.tsx';

/** Views: subsets of the tools, each at its own URL. One view is open at a time. */
export function ViewsSection() {
  const { set, isReadOnly } = useEditor();
  const field = useField(['views']);
  const views = getViews({ views: field.value });
  const [open, setOpen] = useState<string>();
  const store = (next: JsonObject) => set(['views'], Object.keys(next).length > 0 ? next : undefined);
  const add = (name: string) => {
    store({ ...views, [name]: { tools: [] } });
    setOpen(name);
  };
  const remove = (name: string) => {
    const { [name]: _, ...remaining } = views;
    store(remaining);
    setOpen(undefined);
  };
  return (
    <Section
      title="Views"
      text="A view exposes a subset of the tools at its own URL, for one group of agents. Keys can be limited to views."
    >
      <Stack gap="xs" id={field.id} tabIndex={-1}>
        {Object.keys(views).length === 0 && <Text c="dimmed">No views yet. Every agent gets all tools.</Text>}
        {Object.keys(views).map((name) => (
          <ViewItem
            key={name}
            name={name}
            isOpen={open === name}
            onToggle={() => setOpen((current) => (current === name ? undefined : name))}
            onRemove={() => remove(name)}
          />
        ))}
        {!isReadOnly && <NewView existingNames={Object.keys(views)} onAdd={add} />}
        <Errors list={field.errors} />
        <Warnings list={field.warnings} />
      </Stack>
    </Section>
  );
}

function NewView({ existingNames, onAdd }: { existingNames: readonly string[]; onAdd: (name: string) => void }) {
  const [name, setName] = useState('');
  const [isSubmitted, setSubmitted] = useState(false);
  const problem = existingNames.includes(name)
    ? 'this view already exists'
    : getViewNameProblem(name, createSuggestionBudget());
  const add = () => {
    setSubmitted(problem !== undefined);
    if (problem !== undefined) return;
    onAdd(name);
    setName('');
  };
  return (
    <Group component={Form} gap="xs" align="flex-start" onSubmit={add}>
      <TextInput
        label="New view name"
        placeholder="support"
        description="Last segment of the view's URL."
        inputWrapperOrder={['label', 'input', 'description', 'error']}
        value={name}
        onChange={(event) => setName(event.currentTarget.value)}
        error={isSubmitted && problem !== undefined && toVisible(problem)}
        className="th-mono"
        flex="1 1 10rem"
        spellCheck={false}
      />
      <Button variant="default" type="submit" className="th-aligned" leftSection={<IconPlus size={14} />}>
        Add view
      </Button>
    </Group>
  );
}
