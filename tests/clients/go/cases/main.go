// Cases of aztables, each a test of tests/clients/go/test_go.py: see tests/clients/cases.py.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"runtime/debug"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

type entity = map[string]any

type namedCase struct {
	name string
	body func()
}

var (
	ctx      = context.Background()
	endpoint = os.Getenv("TABLE_ENDPOINT")
	account  = os.Getenv("TABLE_ACCOUNT")
	key      = os.Getenv("TABLE_KEY")
	isCosmos = os.Getenv("TABLE_KIND") == "cosmos"
	ptrTo    = to.Ptr[string]

	// a retry would hide a failure of the server
	options = &aztables.ClientOptions{ClientOptions: policy.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}}

	credential = must(aztables.NewSharedKeyCredential(account, key))
	service    = must(aztables.NewServiceClientWithSharedKey(endpoint, credential, options))

	cases  []namedCase
	tables = 0
)

func main() {
	addValues()
	addEntities()
	addBatches()
	addQueries()
	addAccess()
	addService()
	output := json.NewEncoder(os.Stdout)
	for _, one := range cases {
		reason := outcome(one.body)
		if err := output.Encode(map[string]any{"name": one.name, "ok": reason == "", "reason": reason}); err != nil {
			panic(err)
		}
	}
}

func check(name string, body func()) {
	cases = append(cases, namedCase{name, body})
}

// checkStorage adds a case that needs what accounts of the kind cosmos lack, for the reason given.
func checkStorage(name, _ string, body func()) {
	if !isCosmos {
		check(name, body)
	}
}

// outcome runs a case and returns what went wrong, or an empty string.
func outcome(body func()) (reason string) {
	defer func() {
		if failure := recover(); failure != nil {
			reason = fmt.Sprint(failure)
			for _, line := range strings.Split(string(debug.Stack()), "\n") {
				if strings.Contains(line, "/cases/") {
					reason += "\n" + strings.TrimSpace(line)
				}
			}
		}
	}()
	body()
	return ""
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

func ensure(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("%#v is not %#v", actual, expected))
	}
}

func isTrue(condition bool, format string, values ...any) {
	if !condition {
		panic(fmt.Sprintf(format, values...))
	}
}

// The codes of an account of the kind cosmos for those of an account for storage, where both say the same.
var cosmosCodes = map[string]string{
	"AuthenticationFailed":              "Unauthorized",
	"AuthorizationPermissionMismatch":   "Forbidden",
	"AuthorizationProtocolMismatch":     "Forbidden",
	"AuthorizationResourceTypeMismatch": "Forbidden",
	"TableNotFound":                     "ResourceNotFound",
}

// refused checks the status and the code of an error.
func refused(err error, status int, code string) *azcore.ResponseError {
	var refusal *azcore.ResponseError
	if other, isOther := cosmosCodes[code]; isCosmos && isOther {
		code = other
		if other == "Unauthorized" {
			status = 401
		}
	}
	if !errors.As(err, &refusal) {
		panic(fmt.Sprintf("not refused, but %v", err))
	}
	if refusal.StatusCode != status || refusal.ErrorCode != code {
		panic(fmt.Sprintf("refused with %d %s, not %d %s: %v", refusal.StatusCode, refusal.ErrorCode, status, code, err))
	}
	return refusal
}

func byKind(storage, cosmos string) string {
	if isCosmos {
		return cosmos
	}
	return storage
}

func newName() string {
	tables++
	return fmt.Sprintf("go%dx%d", time.Now().UnixNano(), tables)
}

// newTable creates an empty table.
func newTable() (*aztables.Client, string) {
	name := newName()
	table := service.NewClient(name)
	must(table.CreateTable(ctx, nil))
	return table, name
}

func person(rowKey string, more ...entity) entity {
	result := entity{"PartitionKey": "se", "RowKey": rowKey}
	for _, values := range more {
		for name, value := range values {
			result[name] = value
		}
	}
	return result
}

func marshal(value any) []byte {
	return must(json.Marshal(value))
}

func insert(table *aztables.Client, value entity) azcore.ETag {
	return must(table.AddEntity(ctx, marshal(value), nil)).ETag
}

func get(table *aztables.Client, partitionKey, rowKey string) entity {
	return content(must(table.GetEntity(ctx, partitionKey, rowKey, nil)).Value)
}

// content returns the properties of an entity, without its keys, its Timestamp and what describes it.
func content(text []byte) entity {
	result := parse(text)
	for name := range result {
		if strings.HasPrefix(name, "odata.") || name == "PartitionKey" || name == "RowKey" || name == "Timestamp" {
			delete(result, name)
		}
	}
	return result
}

func parse(text []byte) entity {
	result := entity{}
	ensure(json.Unmarshal(text, &result))
	return result
}

// list returns all entities that a query finds, page by page.
func list(table *aztables.Client, query *aztables.ListEntitiesOptions) (entities []entity, pages []int) {
	pager := table.NewListEntitiesPager(query)
	for pager.More() {
		page := must(pager.NextPage(ctx))
		for _, text := range page.Entities {
			entities = append(entities, parse(text))
		}
		pages = append(pages, len(page.Entities))
	}
	return entities, pages
}

func rowKeys(entities []entity) string {
	keys := make([]string, len(entities))
	for number, one := range entities {
		keys[number] = one["RowKey"].(string)
	}
	return strings.Join(keys, " ")
}
