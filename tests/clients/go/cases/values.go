package main

import (
	"bytes"
	"math"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

const guid = "cf8ef051-1b7d-4e93-a1e5-a3944d7e441c"

// returned checks that an insert, a merge and a replacement store values as they were sent, and reads them by the
// client's own types.
func returned(values entity) map[string]any {
	table, _ := newTable()
	insert(table, person("inserted", values))
	for _, mode := range []aztables.UpdateMode{aztables.UpdateModeMerge, aztables.UpdateModeReplace} {
		must(table.UpsertEntity(ctx, marshal(person(string(mode), values)), &aztables.UpsertEntityOptions{UpdateMode: mode}))
		equal(get(table, "se", string(mode)), get(table, "se", "inserted"))
	}
	var read aztables.EDMEntity
	ensure(read.UnmarshalJSON(must(table.GetEntity(ctx, "se", "inserted", nil)).Value))
	return read.Properties
}

func times(value any) time.Time {
	return time.Time(value.(aztables.EDMDateTime)).UTC()
}

func addValues() {
	check("keeps text of every kind and length", func() {
		texts := entity{
			"Empty":    "",
			"Quoted":   `it's "quoted" \ %2F`,
			"Controls": "\x00\t\r\n\x7f",
			"Unicode":  "é 你好 😀 \u202e\u2028",
			"Blanks":   "  ",
			"Date":     "2020-01-01T00:00:00Z",
			"Long":     strings.Repeat("é", 32768),
		}
		equal(returned(texts), map[string]any(texts))
	})
	check("keeps integers of 32 bits up to their bounds", func() {
		values := entity{"Min": int32(math.MinInt32), "Zero": int32(0), "Max": int32(math.MaxInt32)}
		equal(returned(values), map[string]any(values))
	})
	check("keeps integers of 64 bits up to their bounds", func() {
		values := aztables.EDMEntity{Properties: map[string]any{
			"Min":  aztables.EDMInt64(math.MinInt64),
			"Zero": aztables.EDMInt64(0),
			"Max":  aztables.EDMInt64(math.MaxInt64),
		}}
		equal(returned(content(marshal(values))), values.Properties)
	})
	check("keeps Doubles", func() {
		values := entity{"Half": 0.5, "Tiny": math.SmallestNonzeroFloat64, "Huge": math.MaxFloat64, "Tenth": 0.1}
		equal(returned(values), map[string]any(values))
	})
	check("keeps a Double that is whole", func() {
		table, _ := newTable()
		typed := entity{"One": 1, "One@odata.type": "Edm.Double"}
		insert(table, person("ada", typed))
		full := aztables.MetadataFormatFull
		read := must(table.GetEntity(ctx, "se", "ada", &aztables.GetEntityOptions{Format: &full})).Value
		isTrue(!bytes.Contains(read, []byte("Int32")), "%s", read)
		found, _ := list(table, &aztables.ListEntitiesOptions{Filter: ptrTo("One eq 1.0")})
		equal(rowKeys(found), "ada")
	})
	check("keeps the sign of zero", func() {
		table, _ := newTable()
		insert(table, person("ada", entity{"Zero": math.Copysign(0, -1), "Zero@odata.type": "Edm.Double"}))
		equal(math.Signbit(get(table, "se", "ada")["Zero"].(float64)), true)
	})
	check("keeps NaN and the infinities", func() {
		// the client has no value for them: what its users send is the text and its type
		values := entity{}
		for name, text := range map[string]string{"Nan": "NaN", "More": "Infinity", "Less": "-Infinity"} {
			values[name] = text
			values[name+"@odata.type"] = "Edm.Double"
		}
		table, _ := newTable()
		insert(table, person("ada", values))
		equal(get(table, "se", "ada"), values)
	})
	check("keeps Booleans", func() {
		values := entity{"Yes": true, "No": false}
		equal(returned(values), map[string]any(values))
	})
	check("keeps a Guid", func() {
		values := aztables.EDMEntity{Properties: map[string]any{"Id": aztables.EDMGUID(guid)}}
		equal(returned(content(marshal(values))), values.Properties)
	})
	check("keeps bytes", func() {
		all := make([]byte, 65536)
		for number := range all {
			all[number] = byte(number)
		}
		values := aztables.EDMEntity{Properties: map[string]any{
			"All":   aztables.EDMBinary(all),
			"Empty": aztables.EDMBinary{},
		}}
		equal(returned(content(marshal(values))), values.Properties)
	})
	check("keeps times to 100 nanoseconds", func() {
		moments := map[string]time.Time{
			"First":    time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC),
			"Fraction": time.Date(2025, 3, 19, 23, 1, 55, 123456700, time.UTC),
			"Whole":    time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC),
			"Last":     time.Date(9999, 12, 31, 23, 59, 59, 999999900, time.UTC),
		}
		values := aztables.EDMEntity{Properties: map[string]any{}}
		for name, moment := range moments {
			values.Properties[name] = aztables.EDMDateTime(moment)
		}
		read := returned(content(marshal(values)))
		for name, moment := range moments {
			equal(times(read[name]), moment)
		}
	})
	check("refuses values that have no place in their type", func() {
		table, _ := newTable()
		for typeName, text := range map[string]string{
			"Edm.Int64":    "9223372036854775808",
			"Edm.Guid":     "nonsense",
			"Edm.DateTime": "2020-13-01T00:00:00Z",
			"Edm.Binary":   "*",
		} {
			wrong := person("ada", entity{"X": text, "X@odata.type": typeName})
			_, err := table.AddEntity(ctx, marshal(wrong), nil)
			refused(err, 400, "InvalidInput")
		}
	})
	checkStorage("refuses a text that is too long", "Azure Cosmos DB bounds the entity only", func() {
		table, _ := newTable()
		_, err := table.AddEntity(ctx, marshal(person("ada", entity{"X": strings.Repeat("x", 32769)})), nil)
		refused(err, 400, "PropertyValueTooLarge")
	})
}
