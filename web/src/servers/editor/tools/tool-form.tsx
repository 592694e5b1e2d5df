import { Grid, SimpleGrid, Stack } from '@mantine/core';
import { Folded } from '../../../ui/folded.tsx';
import { bounds, values } from '../../declared.ts';
import { ArgumentsEditor } from '../arguments/arguments-editor.tsx';
import {
  ChoiceField,
  HintField,
  ListField,
  LongTextField,
  NumberField,
  SwitchField,
  TextField,
} from '../config-fields.tsx';
import { JsonField } from '../json/json-field.tsx';
import { HeadersEditor } from '../server/headers-editor.tsx';

const methods = [...(values['tools.*.method'] ?? [])];
const digits = new Intl.NumberFormat('en');
const arrayFormats = [
  { value: 'repeat', label: 'a=1&a=2' },
  { value: 'comma', label: 'a=1,2' },
  { value: 'brackets', label: 'a[]=1&a[]=2' },
];

const redirects = [{ value: 'follow', label: 'Are followed, up to 3' }];

/** The tool and the one request that it becomes. */
export function ToolForm({ index }: { index: number }) {
  const at = (...rest: string[]) => ['tools', index, ...rest];
  return (
    <Stack gap="md">
      <TextField path={at('name')} label="Tool name" isRequired isMono placeholder="list_projects" />
      <LongTextField
        path={at('description')}
        label="Tool description"
        isRequired
        text="What it does and when to use it, in natural language, for the model."
      />
      <Grid gap="sm">
        <Grid.Col span={{ base: 12, xs: 3 }}>
          <ChoiceField path={at('method')} label="Method" choices={methods} isRequired />
        </Grid.Col>
        <Grid.Col span={{ base: 12, xs: 9 }}>
          <TextField path={at('url')} label="URL" isRequired isMono placeholder="https://api.example.com/tasks/:id" />
        </Grid.Col>
      </Grid>
      <ArgumentsEditor path={at('input_schema')} />
      <HeadersEditor path={at('headers')} />
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextField
          path={at('response_transform')}
          label="Part of the answer"
          text="Dot path, for example data.results; . is everything."
          placeholder="."
          isMono
        />
        <ListField
          path={at('response_fields')}
          label="Fields to keep"
          text="Of the object or of each item; saves tokens."
          placeholder="Press Enter after each"
        />
      </SimpleGrid>
      <Folded label="Advanced">
        <AdvancedFields at={at} />
      </Folded>
    </Stack>
  );
}

function AdvancedFields({ at }: { at: (...rest: string[]) => (string | number)[] }) {
  return (
    <>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <TextField path={at('title')} label="Title" text="Name shown to people." />
        <NumberField
          path={at('timeout_ms')}
          label="Timeout in ms"
          text={`Up to ${digits.format(bounds.timeoutMs.most)}.`}
          placeholder={digits.format(bounds.timeoutMs.usual)}
        />
        <TextField
          path={at('body')}
          label="Body"
          text="json, form, multipart, or the one argument that is the body."
          placeholder="json"
          isMono
        />
        <ChoiceField
          path={at('array_format')}
          label="Arrays in a query"
          text="How lists are written."
          choices={arrayFormats}
          placeholder="a=1&a=2"
        />
        <NumberField
          path={at('response_limit_bytes')}
          label="Largest answer in bytes"
          placeholder={digits.format(bounds.answerBytes.usual)}
        />
        <NumberField
          path={at('max_answer_tokens')}
          label="Most tokens of an answer"
          text="Agents read the rest with read_more."
          placeholder="That of the server"
        />
        <ListField
          path={at('response_headers')}
          label="Headers of the answer"
          text="Those that the agent gets, such as Link or ETag."
          placeholder="Press Enter after each"
        />
        <ChoiceField
          path={at('redirects')}
          label="Redirects"
          text="For downloads by GET; credentials stay with the API."
          choices={redirects}
          placeholder="Are errors that name the target"
        />
        <ListField
          path={at('tags')}
          label="Tags"
          text="Groups by which agents search."
          placeholder="Press Enter after each"
        />
        <SwitchField
          path={at('pinned')}
          label="Pinned"
          text="Listed although agents search for the others."
          fallback={false}
        />
      </SimpleGrid>
      <SimpleGrid cols={{ base: 1, xs: 2 }} spacing="sm">
        <HintField path={at('annotations', 'readOnlyHint')} label="Only reads" />
        <HintField path={at('annotations', 'destructiveHint')} label="May destroy" />
        <HintField path={at('annotations', 'idempotentHint')} label="Safe to repeat" />
        <HintField path={at('annotations', 'openWorldHint')} label="Reaches the open world" />
      </SimpleGrid>
      <JsonField
        path={at('body_template')}
        label="Template of the body"
        text='JSON body in which ":name" is the value of an argument.'
      />
      <JsonField path={at('output_schema')} label="Output schema" text="JSON Schema of the structured answer." />
    </>
  );
}
