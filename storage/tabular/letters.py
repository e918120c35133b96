"""Common letters, characters and words, by language and encoding."""

from collections.abc import Mapping, Sequence
from typing import Final

# letters beyond ASCII by language, also those of usual foreign names
_WESTERN: Final = (
    "éèêëïöñçâôåüøíóáæ",  # English
    "àâæçéèêëîïôœùûüÿ",  # French
    "äöüßéè",  # German
    "áéíñóúüç",  # Spanish
    "àçèéíïòóúü",  # Catalan
    "àáâãçéêíóôõúü",  # Portuguese
    "àèéìíòóùúî",  # Italian
    "áéèëïóöüêçñ",  # Dutch
    "åäöéü",  # Swedish, Finnish
    "æøåéöü",  # Danish, Norwegian
    "áðéíóúýþæö",  # Icelandic
)
_CENTRAL: Final = (
    "ąćęłńóśźżéü",  # Polish
    "áčďéěíňóřšťúůýžöü",  # Czech
    "áäčďéíĺľňóôŕšťúýžöü",  # Slovak
    "áéíóöőúüű",  # Hungarian
    "ăâîşţșț",  # Romanian
    "čćđšžéöü",  # Croatian, Slovenian
    "çëöüä",  # Albanian, and German names
)
_TURKISH: Final = ("çğıöşüâîûé\u0307",)
_BALTIC: Final = ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž")  # Lithuanian, Latvian, Estonian
_RUSSIAN: Final = "абвгдеёжзийклмнопрстуфхцчшщъыьэюя"
_UKRAINIAN: Final = "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя"
_CYRILLIC: Final = (
    _RUSSIAN,
    _UKRAINIAN,
    "абвгдеёжзійклмнопрстуўфхцчшыьэюя",  # Belarusian
    "абвгдежзийклмнопрстуфхцчшщъьюя",  # Bulgarian
    "абвгдђежзијклљмнњопрстћуфхцчџш",  # Serbian
    "абвгдѓежзѕијклљмнњопрстќуфхцчџш",  # Macedonian
)
_GREEK: Final = ("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ",)
ALPHABETS: Final[Mapping[str, Sequence[frozenset[str]]]] = {
    name: tuple(map(frozenset, alphabets))
    for names, alphabets in (
        (("windows-1252", "iso-8859-15", "ibm437", "ibm850", "ibm865", "macintosh"), _WESTERN),
        (("windows-1252",), (*_WESTERN, "äõöüšž")),
        (("iso-8859-15",), (*_WESTERN, "äõöüšž")),
        (("windows-1250", "iso-8859-2", "ibm852"), _CENTRAL),
        (("windows-1254", "iso-8859-9", "ibm857"), _TURKISH),
        (("windows-1257", "iso-8859-13"), _BALTIC),
        (("windows-1251", "iso-8859-5", "x-mac-cyrillic"), _CYRILLIC),
        (("koi8-r", "ibm866"), (_RUSSIAN,)),
        (("koi8-u",), (_UKRAINIAN, _RUSSIAN)),
        (("windows-1253", "iso-8859-7"), _GREEK),
    )
    for name in names
}
RARE_LANGUAGES: Final[Mapping[frozenset[str], float]] = {
    frozenset(_WESTERN[-1]): 1.0,
    frozenset("äõöüšž"): 0.5,
}

# the most frequent characters of names, addresses and business, the rest of them by the levels of the standards
_HAN: Final[Mapping[str, str]] = {
    "gb18030": (
        "的一是不了在人有我他这中大来上个国和地到说时要就出会可也你对生能子那得于着下自之年过发后作里用道行所然家种事成方多经么去法学如都同现"
        "当没动面起看定天分还进好小部其些主样理心她本前开但因只从想实日军者意无力它与长把机十民第公此已工使情明性知全三又关点正业外将两高间"
        "由问很最重并物手应战向头文体政美相见被利什二等产或新己制身果加西斯月话合回特代内信表化老给世位次度门任常先海通教儿原东声提立及比员"
        "解水名真论处走义各入几口认条平系气题活尔更别打女变四神总何电数安少报才结反受目太量再感建务做接必场件计管期市直德资命山金指克许统区"
        "保至队形社便空决治展马科司五基眼书非则听白却界达光放强即像难且权思王象完设式色路记南品住告类求据程北边死张该交规万取拉格望觉术领共"
        "确传师观清今切院让识候带导争运李刘陈杨黄赵吴周徐孙朱胡郭林罗郑梁谢宋唐邓韩冯曹彭曾肖田董潘袁蔡蒋余杜叶苏魏吕丁沈姜范江傅钟卢汪戴崔"
        "陆廖姚邱夏谭石贾邹熊孟秦阎薛侯雷尹伟芳娜秀敏静丽勇艳杰娟涛超霞刚桂英华玉萍红省县镇街号店货款订单付客户址京沪州深圳杭武汉苏宁波重庆"
        "津厦香港福湖河广鸡肉鱼饭汤茶菜豆面包送退消"
    ),
    "big5": (
        "的一是不了人我在有他這為之大來以個中上們到說國和地也子時道出而要於就下得可你年生自會那後能對著事其里所去行過家十用發天如然作方成"
        "者多日都三小軍二無同麼經法當起與好看學進種將還分此心前面又定見只主沒公從陳林黃張李王吳劉蔡楊許鄭謝郭洪邱曾廖賴徐周葉蘇莊呂江何"
        "羅高蕭潘簡朱鍾彭游詹胡施沈余盧趙梁顏柯翁魏孫戴市區縣路街號店貨款訂單電話址客戶付臺台灣北南東西新竹香港鄉鎮村里段巷弄樓室正確認誤"
        "送達取消退接收明天上下午雞牛豬肉麵飯湯茶豆菜魚美麗華志明文雄建國惠玲雅婷淑芬俊傑家豪怡君"
    ),
    "shift_jis": (
        "日一国会人年大十二本中長出三同時政事自行社見月分議後前民生連五発間対上部東者党地合市業内相方四定今回新場金員九入選立開手米力学問"
        "高代明実円関決子動京全目表戦経通外最言氏現理調体化田当八六約主題下首意法不来作性的要用制治度務強気小七成期公野協取都和統以機平総"
        "加山思家話世受区領多県続進正安設保改数記院女初北午指権心界支第産結百派点教報済書府活原先共得解名交資予川向際査勝面委告軍文反元重"
        "近千考判認画海参売利組知案道信策集在件団別物側任引使求所次水半品昨論計死官増係感特情投示変打男基私各始島直両朝革価式確村提運終挙"
        "果西勢減台広容必応演電歳住争談能無再位置企真流格有疑口過局少放税常状校料沢裁工建語球営空職証土与急止送援供可役構木割聞身費付切由"
        "説転食比難防補車優夫研収断井何南石足違消神番規術備宅配達届佐藤鈴高橋田中渡辺伊山村小林加吉松井木清崎森池橋阿部石前岡藤福岡阪札幌"
        "沖縄府町丁店焼鳥丼味噌醤油茶麺品号注文払込請求在庫返様健太郎花美恵子"
    ),
    "euc-kr": (
        "이다의에는을가하고지로한사서리기도자인시어대그나일정수구아들부해전원주장제보상동라성공조면여오만마신비국니선무소우중미과학안경관용말방계은"
        "생치민식명개내세행예할교모양김박최강윤임황송류홍문손배백허남심노곽차진엄채천함변염석설길연위표왕금옥육맹탁편서울산광특별군읍길름품배송결완료"
        "객화번호취소착불환처액카드현주소연락바랍않음됨었습저료치찌개탕밥면떡볶이불갈비빔냉국"
    ),
}
HAN_OF: Final = {"euc-jp": "shift_jis"}
COMMON: Final = {name: frozenset(characters) for name, characters in _HAN.items()}
OF_TWO_BYTES: Final = frozenset((*COMMON, "euc-jp"))

# frequent words, names and places with letters beyond ASCII: one of them says more than the statistics of its letters
_FREQUENT: Final = """
café résumé naïve fiancé josé andré rené renée zoë chloë noël noëlle michèle gaël joël señor piñata crème
façade rosé purée à déjà été être même après très où août février décembre théâtre élève école numéro
société fête forêt hôtel hôpital île français française région qualité quantité référence prénom téléphone
reçu payé né née père mère frère françois françoise hélène stéphane jérôme benoît céline aurélie éric
valérie frédéric amélie léa zoé chloé anaïs genève orléans besançon nîmes évry béziers québec montréal thé
pâté bœuf gâteau crêpe für über können müssen wäre hätte größe straße nächste später zurück früher möglich
prüfung grün schön jürgen müller günter günther schäfer schröder köhler krüger böhm könig weiß jäger möller
münchen köln düsseldorf nürnberg münster lübeck würzburg göttingen zürich österreich österreichische märz
käse brötchen fußball käthe jörg björn sören öffnung gebühr él está están también más qué cómo cuándo dónde
año años niño niña españa español señora mañana día días teléfono dirección número información peña muñoz
núñez garcía martínez rodríguez lópez gonzález hernández pérez sánchez ramírez fernández gómez díaz álvarez
gutiérrez jiménez méxico málaga león cádiz córdoba bogotá medellín panamá perú maría jesús ángel raúl andrés
não são você até também já então informação informações endereço preço produção ação situação coração mãe
irmão joão antónio antônio conceição gonçalves araújo magalhães simões luís inês vitória brasília goiânia
açúcar maçã pão è più perché città già può così però cioè università qualità attività lunedì martedì
mercoledì giovedì venerdì caffè één belgië ideeën financiële zeeën coördinatie på är från även över för
också någon väg malmö göteborg örebro västerås jönköping umeå gävle växjö åsa göran håkan jörgen også være
får når første går så før københavn århus ålborg søren jørgen bjørn kjær nørre sønder øst tromsø bodø
ålesund håkon pål øystein smørrebrød brød køb sælger että hän myös määrä päivä jyväskylä hämeenlinna väinö
hämäläinen mäkinen mäkelä järvi yö työ að það ég þú við reykjavík guðmundur jón się że są już łódź kraków
gdańsk poznań wrocław białystok częstochowa toruń także również być więcej małgorzata łukasz paweł michał
stanisław józef złoty zł proszę dziękuję imię wiśniewski wójcik dąbrowski že který není také při může více
jméno příjmení plzeň děkuji prosím číslo dvořák novák černý procházka kučera jiří ondřej tomáš lukáš vojtěch
kateřina českých česká slovenská žilina košice ďakujem účet és még után győr pécs szőke erdő jenő ernő
lászló istván józsef zoltán kovács tóth szabó molnár németh köszönöm kérem ő új idő felhő şi în să că
bucureşti iaşi timişoara braşov constanţa ştefan ioniţă mihăiţă mulţumesc što više još već također čovjek
žena željko šibenik čakovec đakovo đuro ivančić kovačević marković š için çok değil güneş şehir ağrı
şanlıurfa eskişehir ığdır iğdır yılmaz kılıç şahin çelik öztürk özdemir doğan çetin güler işık ömer gülşen
ayşe müşteri ürün sipariş ödeme şişli beşiktaş kadıköy üsküdar çay türkiye türk teşekkürler adı soyadı doğum
ülke ilçe šiauliai klaipėda panevėžys žemaitija šis už į iš ačiū žukas šv gatvė rīga jūrmala liepāja jānis
bērziņš ķekava lūdzu mēs või õhtu pärnu jõgeva võru jüri tõnis aitäh šokolaad žukov и в не на что с по это
как все из у за от о для да нет москва санкт петербург россия улица дом иван александр сергей дмитрий андрей
алексей мария анна елена ольга татьяна наталья иванов петров сидоров привет спасибо город имя фамилия адрес
заказ та що або київ львів одеса харків україна олександр вулиця місто дякую е се са българия софия пловдив
варна град георги је београд србија και το η ο του της αθήνα θεσσαλονίκη ελλάδα γιώργος μαρία δημήτρης οδός
πόλη
"""
FREQUENT: Final = frozenset(_FREQUENT.split())
