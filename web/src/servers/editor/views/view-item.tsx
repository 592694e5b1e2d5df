import {
  ActionIcon,
  Anchor,
  Box,
  Button,
  Collapse,
  Group,
  MultiSelect,
  Stack,
  Text,
  Tooltip,
  UnstyledButton,
} from '@mantine/core';
import { IconChevronDown, IconChevronRight, IconTrash } from '@tabler/icons-react';
import { Link } from 'react-router';
import type { JsonObject } from '../../../answers.ts';
import { CopyButton } from '../../../ui/actions/copy-button.tsx';
import { visible } from '../../../ui/text/visible.ts';
import { isObject, listOf, textOf, toolsOf, valueAt, viewsOf } from '../../config.ts';
import { useShownServer } from '../../server-page.tsx';
import { ChoiceField, LongTextField, SwitchField, TextField } from '../config-fields.tsx';
import { Errors, errorText, Warnings } from '../field-messages.tsx';
import { JsonField } from '../json/json-field.tsx';
import { useEdited, useEditor, useField } from '../model/editor-context.ts';

type Props = { name: string; isOpen: boolean; onToggle: () => void; onRemove: () => void };

const modes = [
  { value: 'list', label: 'All of them in a list' },
  { value: 'search', label: 'By search' },
];

/** A view in the list: its head, and its form when it is open. */
export function ViewItem({ name, isOpen, onToggle, onRemove }: Props) {
  const { isReadOnly } = useEditor();
  const { id, errors } = useField(['views', name]);
  const title = textOf(useField(['views', name, 'title']).value);
  return (
    <Box className="th-card th-tool" data-open={isOpen || undefined}>
      <Group gap={4} wrap="nowrap" px="xs" py={6} id={id} tabIndex={-1}>
        <UnstyledButton onClick={onToggle} aria-expanded={isOpen} flex={1} miw={0} p={4}>
          <Group gap="xs" wrap="nowrap">
            {isOpen ? <IconChevronDown size={16} /> : <IconChevronRight size={16} />}
            <Text className="th-mono" fw={600} truncate>
              {visible(name)}
            </Text>
            <Text size="sm" c="dimmed" truncate visibleFrom="sm">
              {visible(title)}
            </Text>
          </Group>
        </UnstyledButton>
        {!isReadOnly && (
          <Tooltip label="Remove this view">
            <ActionIcon
              variant="subtle"
              color="gray"
              onClick={onRemove}
              aria-label={`Remove the view ${visible(name)}`}
            >
              <IconTrash size={16} />
            </ActionIcon>
          </Tooltip>
        )}
      </Group>
      {errors.length > 0 && (
        <Box px="md" pb="xs">
          <Errors list={errors} />
        </Box>
      )}
      <Collapse expanded={isOpen} keepMounted={false}>
        <Box p="md" pt={4}>
          <ViewForm name={name} />
        </Box>
      </Collapse>
    </Box>
  );
}

function ViewForm({ name }: { name: string }) {
  const path = ['views', name];
  const { isNew } = useEditor();
  return (
    <Stack gap="sm">
      {!isNew && <ViewAddress name={name} />}
      <TextField path={[...path, 'title']} label="Title" text="Instead of the name of the server." />
      <LongTextField
        path={[...path, 'description']}
        label="What agents read first"
        text="Instead of the description of the server."
      />
      <ViewTools name={name} />
      <ViewTags name={name} />
      <SwitchField
        path={[...path, 'read_only']}
        label="Only tools that read"
        text="With neither tools nor tags, every tool that reads is in the view."
        fallback={false}
      />
      <ChoiceField
        path={[...path, 'tool_mode']}
        label="How its agents get the tools"
        choices={modes}
        placeholder="All of them in a list"
      />
    </Stack>
  );
}

/** The tools as they were when the list of them last changed, or this part of the page. */
function useTools(): JsonObject[] {
  const { store } = useEditor();
  useEdited(({ listed }) => listed);
  return toolsOf(store.now().config);
}

/** Each text once, as it is shown. */
function optionsOf(texts: readonly string[]) {
  return [...new Set(texts)].filter((text) => text !== '').map((value) => ({ value, label: visible(value) }));
}

/** The name in an entry of `tools`, which is a name or an object. */
function nameIn(entry: unknown): string {
  return isObject(entry) ? textOf(entry.name) : textOf(entry);
}

function ViewTools({ name }: { name: string }) {
  const { store, set, isReadOnly } = useEditor();
  const path = ['views', name, 'tools'];
  const field = useField(path, true);
  const entries = Array.isArray(field.value) ? (field.value as unknown[]) : [];
  const names = entries.map(nameIn);
  const known = useTools().map((tool) => textOf(tool.name));
  const choose = (chosen: string[]) => {
    const next = chosen.map((one) => entries[names.indexOf(one)] ?? one);
    const hasOther = valueAt(store.now().config, ['views', name, 'tags']) !== undefined;
    field.set(next.length > 0 || !hasOther ? next : undefined);
  };
  const change = (index: number) => set([...path, index], { name: names[index] });
  return (
    <>
      <div>
        <MultiSelect
          id={field.id}
          label="Tools"
          description="In this order. Type to search."
          data={optionsOf([...known, ...names])}
          value={names}
          onChange={choose}
          onBlur={field.touch}
          searchable
          limit={100}
          clearable
          readOnly={isReadOnly}
          error={errorText(field.errors)}
          className="th-mono"
        />
        <Warnings list={field.warnings} />
      </div>
      {entries.map((entry, index) =>
        isObject(entry) ? (
          <ChangedTool key={nameIn(entry)} at={[...path, index]} tool={nameIn(entry)} />
        ) : (
          !isReadOnly && (
            <Group key={nameIn(entry)}>
              <Button variant="subtle" size="compact-sm" onClick={() => change(index)}>
                Other texts or fixed arguments for {visible(nameIn(entry))}
              </Button>
            </Group>
          )
        ),
      )}
    </>
  );
}

/** What differs in the view of one of its tools. */
function ChangedTool({ at, tool }: { at: readonly (string | number)[]; tool: string }) {
  const shown = visible(tool);
  return (
    <Box component="fieldset" className="th-card" p="sm" m={0}>
      <Text component="legend" size="sm" fw={600} className="th-mono" px={4}>
        {shown}
      </Text>
      <Stack gap="sm">
        <TextField path={[...at, 'title']} label={`Title of ${shown}`} />
        <LongTextField path={[...at, 'description']} label={`Description of ${shown}`} />
        <JsonField
          path={[...at, 'arguments']}
          label={`Fixed arguments of ${shown}`}
          text={
            'An object such as {"account": "acme"}: sent in every call, not shown to agents and not taken from them.'
          }
          minRows={2}
        />
      </Stack>
    </Box>
  );
}

function ViewTags({ name }: { name: string }) {
  const { isReadOnly } = useEditor();
  const field = useField(['views', name, 'tags'], true);
  const tags = Array.isArray(field.value) ? field.value.map(textOf) : [];
  const known = useTools().flatMap((tool) => listOf(tool.tags).map(textOf));
  return (
    <MultiSelect
      id={field.id}
      label="Tags"
      description="Every tool with one of them is in the view too."
      data={optionsOf([...known, ...tags])}
      value={tags}
      onChange={(value) => field.set(value.length > 0 ? value : undefined)}
      onBlur={field.touch}
      searchable
      readOnly={isReadOnly}
      error={errorText(field.errors)}
    />
  );
}

/** The address of a view of a stored server, and the page on which a client is connected to it. */
function ViewAddress({ name }: { name: string }) {
  const { server, config } = useShownServer();
  const url = `${server.url}/${name}`;
  if (!Object.hasOwn(viewsOf(config), name)) {
    return (
      <Text size="sm" c="dimmed">
        Once it is saved, agents reach it at {visible(url)}.
      </Text>
    );
  }
  return (
    <Group gap="xs">
      <Text className="th-mono" size="sm">
        {visible(url)}
      </Text>
      <CopyButton value={url} label={`Copy the address of ${visible(name)}`} />
      <Anchor component={Link} to={`/servers/${server.slug}/connect?view=${encodeURIComponent(name)}`} size="sm">
        Connect a client to this view
      </Anchor>
    </Group>
  );
}
